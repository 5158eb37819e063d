"""Does the I/O of a job repeat, how often, how surely and where?"""
