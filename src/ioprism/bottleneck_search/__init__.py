"""Which records take more than their share of the I/O time, from every perspective."""
