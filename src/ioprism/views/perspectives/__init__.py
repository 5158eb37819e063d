"""Who did what to which file when: the main view, and the records of every perspective."""
