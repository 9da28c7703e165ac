"""Loaded by Python itself where this folder is on the PYTHONPATH: waits for slots less long."""

from eos_mirror.audit import spark

spark.SLOT_WITHIN_S = 5.0
