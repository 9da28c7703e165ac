"""The driver process: starts and watches the tasks of each flow, and keeps topics in sync."""
