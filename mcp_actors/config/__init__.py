"""[pure] What to run."""
