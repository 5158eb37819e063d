"""What all jobs of a centre say together: what they lose, to which cause, since when."""
