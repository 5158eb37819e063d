"""The period of a job that still runs."""
