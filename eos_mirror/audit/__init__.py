"""Compares a log with its copy, record by record."""
