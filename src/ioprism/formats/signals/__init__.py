"""Traces that tell bandwidth over time: TMIO, FTIO's own forms, GekkoFS, Metric Proxy, text."""
