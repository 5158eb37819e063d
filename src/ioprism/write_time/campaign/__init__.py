"""Measure writes on a real machine, for the write-time model to learn from."""
