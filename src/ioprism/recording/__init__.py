"""Run a program under a tracer: which one, how it is started, and what it costs."""
