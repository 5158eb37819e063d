"""What every job did to the file system, from the counters of its servers."""
