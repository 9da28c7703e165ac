"""The confluent-kafka edge: the only code that touches the client library."""
