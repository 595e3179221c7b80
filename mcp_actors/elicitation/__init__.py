"""[pure] What happens when a server asks."""
