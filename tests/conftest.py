"""Fixtures of all tests."""

pytest_plugins = ["eos_mirror.testing.pytest_plugin"]
