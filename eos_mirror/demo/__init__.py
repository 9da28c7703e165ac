"""The demo: a mirror with a crash, on two real Kafka clusters."""
