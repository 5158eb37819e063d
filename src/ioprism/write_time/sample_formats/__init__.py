"""Measured write times: tables of runs, IOR's results, and the store that keeps them."""
