"""Calls as marks on a picture, at any zoom."""
