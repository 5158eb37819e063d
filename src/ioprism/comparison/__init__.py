"""What changed between runs, and whether it is more than noise."""
