"""Readers of what schedulers write down: each format becomes rows of the JOBS table."""
