"""Tables of events that users made, and tables for other programs: CSV, Parquet, JSON lines."""
