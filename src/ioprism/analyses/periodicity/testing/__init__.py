"""How easily chance alone gives as much evidence."""
