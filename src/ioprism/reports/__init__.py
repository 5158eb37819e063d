"""From results to terminal, HTML and JSON: the only place with wording and colour."""
