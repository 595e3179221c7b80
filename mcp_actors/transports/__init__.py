"""[wire] How messages move."""
