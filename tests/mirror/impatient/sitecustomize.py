"""Shortens the wait for slots. Python loads this if the folder is on the PYTHONPATH."""

from eos_mirror.audit import spark

spark.SLOT_WITHIN_S = 5.0
