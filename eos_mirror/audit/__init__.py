"""What two logs are compared by."""
