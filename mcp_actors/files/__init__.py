"""[wire] What lies on disk."""
