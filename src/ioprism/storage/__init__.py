"""What ioprism keeps on disk: atomic writes, the trace store, the counter store, measured runs."""
