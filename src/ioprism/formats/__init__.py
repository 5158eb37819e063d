"""From bytes to traces, counters, job lists and samples, and back: knows formats, nothing else."""
