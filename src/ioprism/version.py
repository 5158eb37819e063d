"""The version of this package, stated once."""

__version__ = "0.3.0"
