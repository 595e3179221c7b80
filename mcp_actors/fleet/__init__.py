"""[live] What runs together."""
