"""The rhythm of a job that still runs."""
