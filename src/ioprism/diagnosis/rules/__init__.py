"""From results to findings: what is worth telling, and why."""
