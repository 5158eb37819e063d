"""Darshan logs, versions 3.00 to 3.41, without libdarshan."""
