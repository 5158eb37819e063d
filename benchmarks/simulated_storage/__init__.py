"""A simulated parallel file system that runs described programs: traces with a known cause.

Describe a `Program` and a `Machine` and `simulate` it, or `make` a case of a kind and seed.
"""
