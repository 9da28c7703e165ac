"""Exactly-once replication between two Kafka clusters, run by PySpark."""

__version__ = "0.1.0.dev0"
