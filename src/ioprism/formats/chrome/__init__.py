"""Chrome's trace event format, which Perfetto opens: read and written."""
