"""Rhythms as distances between the starts of phases."""
