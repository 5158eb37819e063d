"""When a job does I/O: one segmentation for all questions."""
