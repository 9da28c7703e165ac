"""The process that starts, watches and reports: flows, their tasks, and topics kept in sync."""
