"""Every log event and every metric, in two tables; nothing else may name one."""
