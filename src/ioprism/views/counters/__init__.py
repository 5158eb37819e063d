"""Darshan's counters in the shape of event totals and of usage."""
