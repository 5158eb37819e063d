"""Rules that explain bottlenecks: files people can change, and what reads and applies them."""
