"""Kafka's bytes: record batches as they lie in Fetch answers and Produce requests."""
