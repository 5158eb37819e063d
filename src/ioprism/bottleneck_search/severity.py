"""How far a record's share of the I/O time is out of proportion to its share of the work.

The angle of (share of time / share of work), from 0 to 90 degrees: 45 is in proportion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from ioprism.bottleneck_search.result import INITIALS
from ioprism.bottleneck_search.settings import Settings

Floats = npt.NDArray[np.float64]

LABELS = tuple(INITIALS)
Label = pl.Enum(LABELS)
# The paper names the first three; the steps of 15 degrees go on below them.
PAPER = (("critical", 75.0), ("very high", 60.0), ("high", 45.0), ("medium", 30.0), ("low", 15.0),
         ("trivial", 0.0))  # fmt: skip
WISIO_DEGREES = (80, 70, 60, 50, 40, 30, 20)  # from these angles on; the rest is `none`
WISIO_PERCENTILES = (0.9, 0.75, 0.5, 0.25, 0.1, 0.01, 0.001)
# Records in exact proportion differ from 45 degrees by rounding only.
TOLERANCE = 1e-9  # degrees


def rate_records(records: pl.DataFrame, settings: Settings, *, io_time: float) -> pl.DataFrame:
    """Add time, time_share, work_share, severity, label and whether the record is a bottleneck.

    Args:
        records: sums of one view, as `summed_records` gives them; `work` too, if the metric
            is one's own.
        settings: the metric, the threshold, and how times of processes are joined.
        io_time: seconds of I/O of the whole job, joined in the same way.
    """
    shares = _shares(records, settings)
    if settings.compatible:
        return _as_wisio(shares, settings, io_time)
    return _as_paper(shares, settings)


def _shares(records: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    longest = settings.across == "max"
    time = pl.col("slowest_process" if longest else "seconds")
    weighed = time
    work = pl.col("count")
    if settings.work is not None:
        work = pl.col("work")
    elif settings.metric == "bytes":
        # Bandwidth is about the time that data took, not about opens and stats.
        weighed = pl.col("slowest_process_data" if longest else "data_seconds")
        work = pl.col("bytes")
    elif settings.metric == "time":
        work = pl.col("count") * 0 + 1  # an equal share each
    return records.with_columns(
        time=time, time_share=_share(weighed), work_share=_share(work),
        count_share=_share(pl.col("count")), size_share=_share(pl.col("bytes")),
    )  # fmt: skip


def _share(column: pl.Expr) -> pl.Expr:
    whole = column.sum()
    return pl.when(whole > 0).then(column / whole).otherwise(0.0)


def angle(time_share: pl.Expr, work_share: pl.Expr) -> pl.Expr:
    """The severity in degrees; time without any work is 90."""
    return pl.arctan2(time_share, work_share).degrees()


def _as_paper(records: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    severity = pl.col("severity")
    angles = records.with_columns(severity=angle(pl.col("time_share"), pl.col("work_share")))
    if settings.percentile is None:
        critical = severity > settings.threshold + TOLERANCE
    else:
        critical = _percentile(severity) >= settings.percentile
    return angles.with_columns(
        label=severity_label(severity), critical=critical & (pl.col("time") > 0)
    )


def _percentile(column: pl.Expr) -> pl.Expr:
    return column.rank("average") / pl.len()


def severity_label(severity: pl.Expr) -> pl.Expr:
    """The paper's name for an angle."""
    label = pl.lit("trivial")
    for name, edge in reversed(PAPER):
        label = pl.when(severity > edge + TOLERANCE).then(pl.lit(name)).otherwise(label)
    return label.cast(Label)


def identifiers() -> pl.Expr:
    """What records are called: the initials of their label, and their number."""
    initials = pl.lit(pl.Series(list(INITIALS.values())))
    return pl.concat_str(initials.gather(pl.col("label").to_physical().cast(pl.UInt32)), "number")


def _as_wisio(records: pl.DataFrame, settings: Settings, io_time: float) -> pl.DataFrame:
    """Classify as WisIO 0.2.2: by the inverse slope, with the threshold turned round."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if settings.metric == "time":
            slope = order = records["time"].to_numpy() / io_time
        else:
            slope = records["work_share"].to_numpy() / records["time_share"].to_numpy()
            order = pl.Series(1 / slope).rank("average").to_numpy() / max(1, len(slope))
    by_order = settings.metric == "time" or settings.percentile is not None
    if settings.percentile is not None:
        critical = order >= settings.percentile
    elif settings.metric == "time":
        critical = np.ones(len(slope), bool)  # it has no threshold for this metric
    else:
        critical = slope <= np.tan(np.deg2rad(settings.threshold))
    label = _wisio_labels(order, slope, by_order=by_order)
    return records.with_columns(
        severity=angle(pl.col("time_share"), pl.col("work_share")),
        label=pl.Series(label, dtype=pl.String).cast(Label),
        critical=pl.Series(critical),
    )


def _wisio_labels(order: Floats, slope: Floats, *, by_order: bool) -> Sequence[str]:
    names = np.array(LABELS)
    if by_order:
        steps = np.sum([order < edge for edge in WISIO_PERCENTILES], axis=0)
    else:
        edges = [np.tan(np.deg2rad(90 - degrees)) for degrees in WISIO_DEGREES]
        steps = np.sum([~(slope <= edge) for edge in edges], axis=0)
    labels: list[str] = names[steps].tolist()
    return labels
