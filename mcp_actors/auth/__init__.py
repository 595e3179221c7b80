"""[wire] Who we are."""
