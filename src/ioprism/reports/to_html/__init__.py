"""Results as self-contained pages: nothing is fetched, nothing in them can run but our own code."""
