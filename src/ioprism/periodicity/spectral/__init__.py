"""Periods as lines in a spectrum, and what to do with spectra."""
