"""What jobs gain if the file system serves them in a better order: a simulated machine."""
