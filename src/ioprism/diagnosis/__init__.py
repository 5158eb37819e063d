"""One judgement per job: what stalls it, which change would save how much, and what cannot be told.

`judge.py` states the steps. A trace or its counters become one `Observed` (rows of calls with
weights); every check looks at it and may propose a `Change`; `replay` turns changes into seconds;
`verdict.py` decides which of them are causes.
"""
