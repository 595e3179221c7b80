"""[live] Who is alive."""
