"""Recorder's trace folders, of every generation since 2.0."""
