"""Numbers that decide the report on a centre, and on a job beside the jobs of its centre.

A number without a source is chosen.
"""

from __future__ import annotations

from ioprism.units import HOUR

CERTAIN = 0.001  # probability of chance, after correction for how many were asked
# Values on each side of a change, low values of a stretch, jobs that read an input worth staging.
FEWEST = 5
OFTEN = 0.8  # share of low values while something is wrong
SLOWER = 0.7  # a sick part reaches less than this share of its peers' rate
RARELY = 0.01  # of a healthy part's jobs are as slow as that, at least
TOGETHER = 6 * HOUR  # seconds; jobs of a user that start so near are one observation
CHANGED = 1.3  # factor by which a number, or the stall beside a neighbour, differs noticeably
# Factor from every earlier request size of an operation; of the load of servers over the quiet
# third of jobs.
LARGER = 1.5
CHANGED_SHARE = 0.2  # absolute change of a share that counts
TENTH = 0.1  # quantile, or part of an operation: the slowest, the fastest, a noticeable one

MIN_RUNS = 8  # earlier runs for a median and a spread
SIMILAR_SCALE = 1.25  # factor between ranks, and between bytes, of runs that are compared
DEVIATIONS = 4.0  # robust standard deviations from the median: 1 of 16,000 normal numbers
SURPASSED = 0.75  # of the earlier runs: bad company and sick targets slow one in ten or more

# Factor between ranks (more reach more), targets (what few-targets calls few) and bytes (less may
# come from a cache, more no longer, unless it was synced) of jobs that are compared.
SIMILAR = 2.0
MIN_JOBS = 3  # with this run: two runs of one configuration differ by a factor of 2 (IO500)
LARGE = 0.5  # of a block that file systems serve as one: large requests
CONFIDENCE = 0.9  # in a cause that the log allows and all comparable jobs confirm
KNOWN = 0.9  # share of a job's time and servers for which counters must be known
STAGED_BYTES = 2**30  # read by all jobs together, from which an input is worth staging
