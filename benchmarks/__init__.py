"""One file per claim; each measures ioprism and its peer, or the physical limit, in one run."""
