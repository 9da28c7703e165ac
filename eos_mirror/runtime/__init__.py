"""Runs tasks in child processes or Spark workers, under supervisors in the driver."""
