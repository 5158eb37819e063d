"""Executed examples."""
