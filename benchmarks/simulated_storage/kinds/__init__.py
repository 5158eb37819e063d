"""What can be wrong with a job's I/O, one function per kind of case."""
