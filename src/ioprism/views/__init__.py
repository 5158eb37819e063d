"""From events to tables, signals and intervals, in steps that combine over partitions."""
