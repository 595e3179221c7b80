"""Measures this package side by side with the official SDK and with a bare floor; see README.md here."""
