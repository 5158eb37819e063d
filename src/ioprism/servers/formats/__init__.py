"""Readers of servers' counters and schedulers' job lists, one class per format."""
