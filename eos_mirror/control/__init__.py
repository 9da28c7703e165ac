"""Composition: what the driver builds, and what a task is built from."""
