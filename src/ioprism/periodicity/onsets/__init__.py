"""Periods as distances between the starts of phases."""
