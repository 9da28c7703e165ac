"""Our own lane: Kafka's protocol on plain sockets, from log to log."""
