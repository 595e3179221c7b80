"""[pure] What a model sees."""
