"""Measurements of the whole product on real brokers; never asserted as wall times in tests."""
