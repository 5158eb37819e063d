"""From bytes to traces: knows formats, nothing else."""
