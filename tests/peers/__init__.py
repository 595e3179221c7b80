"""Talks to servers of others."""
