"""What runs in a task process: the mirror task and the checkpoint task."""
