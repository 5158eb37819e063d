"""Numbers that several steps of the period search share: one idea, one number.

With these numbers 843 answers (signals of known period and `benchmarks.period_families`,
offline and live) are those of the separate numbers that they replace.
"""

from __future__ import annotations

import math

# Shares
MOST = 0.7  # of phases, beats or seconds: what holds for most of them
NEARLY_ALL = 0.9  # of phases, bytes or variance
NEARLY_ALL_BYTES = 0.95  # of a phase or of the job; the rest are stragglers
# Of the period
MAX_OFFSET = 0.15  # between the start of a phase and where it is due
PHASE_MARGIN = 0.05  # around a phase: it may begin a little before it is found to
MAX_CLOCK_VARIATION = 0.1  # of distances that follow a clock
SAME_PERIOD = 0.1  # relative difference of two periods that may be one
SAME_ANSWER = 0.05  # of two ways to find the same period
# Chances
MAX_CLEAR_LOG_CHANCE = math.log(0.01)  # the usual false-alarm level
MAX_SUGGESTIVE_CHANCE = 0.2  # of what may be compared with other evidence, but not announced
MAX_SUGGESTIVE_LOG_CHANCE = math.log(MAX_SUGGESTIVE_CHANCE)
# Counts
FEWEST_REPETITIONS = 2
MIN_SURE_REPETITIONS = 3  # fewer show a period at best
MIN_STRETCH = 4  # waits; a shorter regular stretch among irregular ones is chance
MANY_REPETITIONS = 7  # so many need no other witness
