"""How long a file-per-process write takes, and which configuration is better."""
