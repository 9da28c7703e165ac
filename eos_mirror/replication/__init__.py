"""The engine: what a mirror task does, and in which order."""
