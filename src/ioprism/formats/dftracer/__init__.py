"""DFTracer's `.pfw` and `.pfw.gz`: JSON lines of the calls of one process each."""
