"""[kit] Scripted servers and broken wires, for our tests and yours."""
