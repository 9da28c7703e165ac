"""Every log event and every metric, in two tables; no other module defines one."""
