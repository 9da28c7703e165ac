"""Measurements of the whole product on real brokers; no test asserts their wall times."""
