"""The documentation; the pages under reference/ are generated."""
