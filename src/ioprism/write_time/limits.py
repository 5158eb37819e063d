"""The numbers that decide what a write-time model says: meaning, unit and source.

Technical sizes stay with the code that uses them; what to sample is in `sampling.py`.
"""

from __future__ import annotations

# Accuracy
CLOSE, FAIR = 0.2, 0.3  # relative errors that the paper counts as accurate
SAME = 0.05  # relative difference up to which scores, ratios and times are equal; chosen
NEARLY_COLLINEAR = 0.9999  # correlation of logarithms, above which a fit cannot tell two apart
SAME_LOAD = 1e-9  # relative difference below which two features or loads are one: rounding
MIN_STAGE_SHARE = 1e-6  # of the time; smaller parts are rounding
MIN_FEATURE_SHARE = 0.01  # of the predicted time, for a feature to count as deciding; chosen

# Samples
HELD_OUT = 0.2  # of every training scale; the paper of 2021
MIN_SAMPLES = 5  # to train at all
MIN_COUNT = 10  # residuals or samples that a quantile or a share needs to mean something
MIN_SAMPLES_FOR_SHAPE = 30  # that tell how stages work together
TEST_SCALES = {"small": (200, 256), "medium": (400, 512)}  # nodes; the paper's
SPLITS = (0.1, 0.25, 0.5, 0.75, 0.9)  # quantiles at which a parameter is tried as an explanation

# Forward checks, and how far to trust a model beyond its training scales
MAX_FACTOR = 16  # a check predicts scales up to this many times the largest it saw
MAX_CHECKS = 4
MIN_SCALES = 3  # that a check trains on
LEAST_SHARE = 0.1  # of the shortest sample: no write is predicted to be shorter
SAFETY_PER_DOUBLING = 0.15  # checks are few, and all of them are at smaller scales
UNCHECKED_SAFETY = 1.5  # per doubling, where no forward check was possible
UNKNOWN_NOISE = 0.5  # added to both ends' logarithms where no unconverged sample was measured

# Stages of the write path
SPEED_DEVIATION = 0.03  # standard deviation of equal components' speeds, as a share; real machines
EXPONENTS = (5.0, 3.0, 2.0, 1.0)  # of overlap; of those as good, the nearest to a perfect pipeline
TOGETHER = 3.0  # exponent of what happens at the same time, and where samples are too few to tell
UNDECIDED = 1.5  # exponent where samples do not tell whether files are created before data flows
CROWDING = (0.0, 0.05, 0.1, 0.2)  # exponents of streams by which a shared component is slower
MIN_LOG_LIKELIHOOD = 3.0  # a difference in log-likelihood that tells two shapes apart: 20 to 1
STAGE_PENALTY = 0.02  # on the cost of a stage, per sample
SHARPNESS = 1.3  # deviations beyond which residuals count linearly (Huber 1964: 1.345)
EVIDENCE = 0.001  # rise of the loss per sample that shows a stage to be slower than it can be
LEAST_EVIDENCE = 0.8  # rise of the whole loss: 90 % from one side
