"""Calls over time: bandwidth, busy intervals, heat maps."""
