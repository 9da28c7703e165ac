"""Where task bodies live: child processes or Spark workers, under supervisors in the driver."""
