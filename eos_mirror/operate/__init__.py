"""What people ask of a flow: checks before a start, translation of offsets."""
