"""From views to results: pure functions without files, text or colour."""
