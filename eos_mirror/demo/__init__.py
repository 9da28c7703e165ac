"""The demonstration: a program with acts, on two real Kafka clusters."""
