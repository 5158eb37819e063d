"""The numbers that decide what a report claims about a machine: meaning, unit and source.

Shares are from 0 to 1. "Paper" is El Sayed et al., 'Parallel I/O Characterisation Based on
Server-Side Performance Counters'.
"""

from __future__ import annotations

# Shares of bytes, time or servers below which something is small: chosen, a tenth.
MINOR = 0.1
# Relative differences and gaps that are not worth a word: chosen, a twentieth.
NEGLIGIBLE = 0.05
SHARE_OF_JOBS = 0.8  # paper, Table II: 80 % of jobs stay at or below
TOP_JOBS = 0.2  # paper: the share of jobs that move nearly everything
DOMINANT = 2 / 3  # of the bytes: twice as much in one direction as in the other
MIN_DAYS = 7.0  # a month with fewer is not compared with its neighbour: chosen, a week
MIN_SERVERS = 4  # with fewer servers a job has little to spread: chosen
# Interference: what is compared, and when a difference is more than chance.
MIN_OBSERVATIONS = 4  # in each state: with 4 and 4, Mann-Whitney reaches p = 1/70 at best
SIGNIFICANCE = 0.05  # the usual level of a test, for all pairs together (Holm 1979)
QUIET = 0.25  # where others never rest: the quarter of the time in which they move least
BESIDE = 0.5  # of the first part of a run: a neighbour that is there for longer counts
MAX_BINS = 20_000  # of time in which rates are compared: 100 MB
MAX_APPLICATIONS = 16  # those with most bytes: pairs grow with the square
# Counters.
SMALLEST_RESET = 0.5  # a sample that falls by less and recovers is out of order, not a reset
SAMPLING_JITTER = 0.01  # 119.8 s is meant to be 120 s
# Memory.
ROWS_IN_MEMORY = 1_500_000  # measured: about 300 MB of samples or windows
ROWS_PER_TABLE = 200_000  # of samples that are made into one table
