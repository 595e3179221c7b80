"""[door] For people."""
