"""The types that flow between the folders."""
