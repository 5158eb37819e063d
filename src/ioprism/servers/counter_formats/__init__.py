"""Readers of what file-system servers count: each format becomes rows of the COUNTERS table."""
