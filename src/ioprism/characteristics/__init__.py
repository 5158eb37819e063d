"""How much I/O a job did, by whom, through which interface."""
