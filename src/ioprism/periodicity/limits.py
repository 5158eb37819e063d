"""The numbers that decide what is called a period: meaning, unit, and source or measurement.

"measured": a change by a third changes some of the answers for streams of known period
(`benchmarks.period_families`). Technical sizes, such as those of buffers and transforms, stay with
the code that uses them.
"""

from __future__ import annotations

import math

# Shares
MINOR = 0.1  # of phases, of the time, of the level of a phase: what may be left aside; convention
MOST = 0.7  # of phases, beats or seconds; measured
NEARLY_ALL = 0.9  # of phases, bytes or variance; convention
NEARLY_ALL_BYTES = 0.95  # of a phase or of the job, the rest are stragglers; FTIO
MIN_COMPARABLE = 0.3  # of a typical volume, time or spread: less is another thing; measured
NEGLIGIBLE = 0.01  # of the mean rate, or of a phase: as good as nothing; measured
TOLERANCE = 0.8  # of the highest score or peak: as high as it; Eq. 3 of the FTIO paper
MIN_BYTES_SHARE = 0.05  # of the bytes of its direction; fewer are a detail, not the answer; chosen
MIN_SPECTRUM_SHARE = 0.2  # of the variance; pairs of bursts at random times give less
MAX_MAYBE_CONFIDENCE = 0.5  # a higher one is worded as a fact; by definition

# Of the period, or relative to it
SAME = 0.05  # what differs by less is the same: answers, starts, distances, margins; convention
SAME_PERIOD = 0.1  # two periods that may be one, distances that follow a clock; convention
MAX_OFFSET = 0.15  # between the start of a phase and where it is due; measured
# Until which a phase that is due may still begin; the pause below which a stream may be serial;
# the variation of distances up to which no process without a clock is as even; chosen
QUARTER = 0.25
MAX_SILENT_PERIODS = 1.5  # without a phase, after which a period may be over; chosen
MAX_LOST_PERIODS = 2.0 * MAX_SILENT_PERIODS  # after which it has ended
MAX_VARIATION = 0.3  # of distances where gaps may be even and they are not
MAX_LOOP_VARIATION = 0.55  # of distances, for their mean to predict the next; measured
PARTS_OF_PERIOD = 16  # to average over, for a share without short requests; measured
RECENT_DISTANCES = 8  # distances that say when the next phase is due; chosen
MAX_CLOCK_CORRELATION = -0.3  # of neighbouring distances; a clock has -0.5, a loop 0; theory

# Probabilities; logarithms are natural
LEVEL = 0.01  # the usual false-alarm level
MAX_CLEAR_LOG_CHANCE = math.log(LEVEL)
MAX_SUGGESTIVE_CHANCE = 0.2  # of what is compared with other evidence, not announced; chosen
MAX_SUGGESTIVE_LOG_CHANCE = math.log(MAX_SUGGESTIVE_CHANCE)
NEGLIGIBLE_LOG_CHANCE = math.log(1e-9)  # nothing else needs to be looked at; only saves time
NEGLIGIBLE_CHANCE = 1e-5  # of phases, for the spectrum not to be asked; measured
MIN_LINE_EVIDENCE = 8.0  # negative log: 1 % chance in any of the fractions tried
# Times the level, up to which many equal phases show a loop, and by which a clear line confirms
# phases; without it 1 of 15 serial streams is called periodic (measured)
LOOP_FACTOR = 12.0

# How the false-alarm level is divided among questions (Bonferroni); likely ones have more
PHASES_WEIGHT = 0.8  # phases; the spectrum has the rest; measured
LIVE_PHASES_WEIGHT = 0.9  # the same of a running job, whose spectrum is asked rarely; measured
FIRST_WEIGHT = 0.3  # at least, the finest scale
FINEST_WEIGHT = 8.0  # the finest scale, beside another one with 1; measured
LIKELY_WEIGHT = 4.0  # where gaps separate most clearly, and the phases of the job; measured
WHOLE_WEIGHT = NEARLY_ALL  # all phases together
PART_WEIGHT = (1.0 - WHOLE_WEIGHT) / 2  # all but missing ones; stretches of them
FIRST_SHARES = (0.3, 0.2, 0.2, 0.2)  # looks at four to seven phases of a running job
NEXT_QUESTION = 1.25  # growth of a number of phases, until it is another question; chosen
SPECTRUM_GROWTH = 1.5  # of the window, until the spectrum, which is costly, is asked again

# Counts
FEWEST_REPETITIONS = 2
MIN_SURE_REPETITIONS = 3  # fewer show a possible period
MIN_PHASES = FEWEST_REPETITIONS + 1
MIN_SURE_PHASES = MIN_SURE_REPETITIONS + 1
MIN_STRETCH = MIN_SURE_PHASES  # waits; a shorter regular stretch among irregular ones is chance
MANY_REPETITIONS = 7  # need no other evidence
MIN_SPECTRUM_REPETITIONS = 2.5  # in the signal, for a spectrum to show them
MIN_SAMPLES_PER_PERIOD = 2.5  # a heat map may have three bins per period
MAX_CYCLE = 4  # phases of different kinds in a period
MAX_VALUES = 6  # of distances that are called slotted

# Phases in a signal
RESTING_SHARE = 0.2  # of the samples rest at a level; noise has half of it; measured
MIN_MEAN_LEVEL = 0.4  # of that way, which a phase has on average; measured
OTHER_KIND = 2.0  # factor by which gaps and lengths of two kinds differ
MAX_PARTINGS = 2  # ways to separate short and long gaps
MATCHING_LENGTH = 0.07  # relative difference up to which lengths match; measured
CHANCE_OF_MATCH = 0.15  # of two lengths that vary by a third or more; upper bound
SAME_LENGTH = 0.25  # share by which phases of a period may at least differ in length
# And in their mean level (ranges of partly periodic signals depend on it), and of the way from
# idle to busy, above which a phase begins; measured
SAME_LEVEL = 0.15
MIN_ALTERNATION = 0.4  # negative correlation of coarse neighbours: 3.2 samples per period; theory
MAX_DEVIATIONS = 4.0  # standard deviations from the typical phase, up to which one is like it
TYPICAL_QUANTILE = 0.75  # of the correlations with a cosine

# Processes without a period: shapes of gamma laws, whose variation is 1 / sqrt(shape)
EXPONENTIAL_SHAPE = 1.0  # bursts at random times
CROSSINGS_SHAPE = 2.5  # times between the crossings of noise: most vary by two thirds
RENEWAL_SHAPE = 4.0  # gaps, and crossings of smooth noise: they vary by half or more
STEPS_SHAPE = 11.0  # distances of a data loader's steps: they vary by 30 % or more
SERVICE_SHAPE = 25.0  # how long equal requests take: it varies by a fifth or more
STEPS_LOG_PRIOR = math.log(0.25)  # share of processes without a clock that are as even as steps
STEPS_EVER_LOG_PRIOR = math.log(0.15)  # the same at any moment, for which the bound is loose
PERIODIC_VARIATIONS = (0.02, 0.08, 0.08, 0.17)  # a steady job, most jobs (twice), jittering ones
WANDERING_STEPS = (0.15, 0.25, 0.4)  # from one wandering distance to the next, as logarithms
MIN_GREENWOOD_WAITS = 10  # with fewer the volume is tight, for the exponential law; theory
MIN_GAMMA_WAITS = 4  # the same for higher shapes; theory
MAX_TAIL_PER_WAIT = 0.4  # log of a chance, beyond which the log-normal approximation fails; theory
TREND_STANDARD_ERRORS = 1.645  # one-sided 5 % quantile, for the ratio of von Neumann (1941)
CLEAR_STANDARD_ERRORS = 3.09  # one-sided 0.1 % quantile: nor is there a loop with a mean

# Slots: distances of a few values in random order
MIN_VALUE_DISTANCE = 0.04  # of the mean distance, between two values; measured
MAX_WITHIN_VARIANCE = 4e-3  # share of the variance within values; jitter has all of it
MIN_DISTINCT_SAMPLES = 3.0  # samples; distances that differ by less differ by rounding
MAX_ROUNDING = 1.2  # units between rounded starts and their line, which takes a little; measured
POLLING_SHARE = 0.6  # of a phase's length, by which polling may move its start

# Spectra
HARMONICS = (1, 2, 3, 4, 6, 8)  # how many multiples of a frequency are summed
MAX_DIVISOR = 40  # of the clearest frequency, down to the fundamental

# A running job: changes (the sum of Page, 1954, in standard deviations) and predictions
SCORE_SLACK = 0.5  # as usual for Page's sum
ALARM_SCORE = 5.0  # as usual
PRIOR_WEIGHT = 2.0  # phases that the spread of the period is worth; chosen
OUTCOME_DECAY = NEARLY_ALL  # weight of an outcome beside that of the next one; chosen
