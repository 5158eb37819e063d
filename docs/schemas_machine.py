"""The documents about machines and centres: servers, the write-time model, all jobs of a site."""

from __future__ import annotations

from docs.schema_words import (
    ANY,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Schema,
    each,
    joined,
    keys,
    maybe,
    named,
    of,
    one_of,
    said,
)  # fmt: skip
from ioprism.model.counters import DIRECTIONS
from ioprism.model.schema import Column
from ioprism.servers.documents import PLAIN
from ioprism.servers.fleet import AccountChange, Contact, SizeClass
from ioprism.servers.job_metrics import FLAGS, MEASURES
from ioprism.servers.load import PARTS
from ioprism.servers.validation import BenchmarkPhase
from ioprism.site.steps import Added
from ioprism.site.store import SITE_JOBS
from ioprism.write_time.estimate import FeaturePart

SHARE = said(maybe(NUMBER), "from 0 to 1")


def directions(schema: Schema) -> dict[str, Schema]:
    """The same for reads and for writes."""
    return dict.fromkeys(DIRECTIONS, schema)


SETTINGS = keys({
    "interval": said(NUMBER, "seconds"), "thresholds": each(WHOLE), "grid": TEXT, "window": TEXT,
    "reset": TEXT, "shared": TEXT, "min_runtime": said(NUMBER, "seconds"),
})  # fmt: skip
ATTRIBUTION = keys({"jobs": named(WHOLE), "shared_bytes": TEXT})
BY_THRESHOLD = keys({**dict.fromkeys(MEASURES, maybe(NUMBER)), "has_io": maybe(FLAG)})
JOB_DIRECTION = keys({
    **dict.fromkeys(PLAIN, maybe(NUMBER)),
    "by_threshold": said(named(BY_THRESHOLD), "by bytes per second that count as I/O"),
})  # fmt: skip
JOB = keys({
    "job": TEXT, "start": said(NUMBER, "since 1970"), "end": NUMBER, "user": maybe(TEXT),
    "account": maybe(TEXT), "partition": maybe(TEXT), "name": maybe(TEXT), "servers": ANY,
    "coverage": SHARE, "attribution": TEXT, "unknown_seconds": maybe(NUMBER),
    "flags": each({"enum": list(FLAGS)}), **directions(JOB_DIRECTION),
    "opens": maybe(NUMBER), "closes": maybe(NUMBER),
})  # fmt: skip
MOVED = keys({"bytes": NUMBER, **dict.fromkeys(PARTS, NUMBER)})
TOTALS = joined(MOVED, keys({
    "measured": NUMBER, "outside_job_list": NUMBER, "operations": maybe(NUMBER),
    "small_requests": keys({
        "limit": WHOLE, "share": SHARE, "by_mean_size": each(of(SizeClass)),
    }),
    "top_20_share": SHARE, "highest": named(maybe(NUMBER)),
    "eighty_percent": named(maybe(NUMBER)),
}))  # fmt: skip
MOVER = keys({
    "name": maybe(TEXT), "jobs": WHOLE, **directions(NUMBER), "shared": named(NUMBER),
    "seconds": NUMBER,
})  # fmt: skip
WHO = keys({"user": maybe(TEXT), "name": maybe(TEXT), "jobs": WHOLE})
MACHINE = keys({
    "settings": SETTINGS,
    "machine": keys({
        "jobs": WHOLE, "listed_jobs": WHOLE, "start": NUMBER, "end": NUMBER,
        "flags": named(WHOLE), "attribution": ATTRIBUTION,
        "dominance": keys({"write_share": SHARE, "sentence": TEXT}), **directions(TOTALS),
    }),
    "eighty_percent": each(keys({
        "measure": TEXT, "threshold": WHOLE, **directions(maybe(NUMBER)),
    })),
    "users": each(MOVER), "accounts": each(MOVER),
    "servers": each(keys({"name": TEXT, **directions(MOVED)})),
    "profile": keys({"timezone": TEXT, **directions(each(each(maybe(NUMBER))))}),
    "trend": keys({
        "months": each(keys({
            "month": TEXT, "days": NUMBER, **directions(NUMBER), "change": named(maybe(NUMBER)),
        })),
        "compared": maybe(each(TEXT)), "accounts": each(of(AccountChange)),
    }),
    "interference": each(keys({
        "application": WHO, "neighbour": WHO, "measure": TEXT, "slowdown": NUMBER,
        "observations": keys({"beside": WHOLE, "quiet": WHOLE}), "hours_beside": NUMBER,
        "probability": NUMBER, "adjusted_probability": NUMBER, "certain": FLAG,
    })),
    "contacts": each(of(Contact)), "busiest": each(TEXT), "flagged": each(TEXT),
})  # fmt: skip
BENCHMARK = keys({
    "passed": FLAG, "compared": FLAG, "host": TEXT,
    "record": said(TEXT, "file with what the benchmark moved"),
    "servers": each(TEXT),
    "phases": each(of(BenchmarkPhase)),
    "findings": each(keys({
        "found": NUMBER, "ratio": said(maybe(NUMBER), "found over moved"), "passed": FLAG,
    })),
})  # fmt: skip
SERVERS = {
    "ingest": keys({"files": each(keys({
        "path": TEXT, "format": maybe(TEXT), "records": WHOLE, "known": FLAG,
        "warnings": each(TEXT),
    }))}),
    "jobs": keys({"settings": SETTINGS, "attribution": ATTRIBUTION, "jobs": each(JOB)}),
    "report": MACHINE,
    "validate": BENCHMARK,
}  # fmt: skip

RATES = {"read": NUMBER, "write": NUMBER, "operations": NUMBER, "opens": NUMBER}
LOADS = each(keys({"name": TEXT, **RATES, "share": NUMBER, "user": TEXT}))
SERVERS_WATCH = keys({
    "time": NUMBER, "round": WHOLE, "seconds": NUMBER, **RATES,
    "moved": keys({"read": WHOLE, "write": WHOLE}), "unattributed": NUMBER,
    "jobs": LOADS, "users": LOADS, "targets": LOADS,
    "counts": keys(dict.fromkeys(("jobs", "users", "targets", "sources", "answered"), WHOLE)),
    "notes": each(TEXT),
})  # fmt: skip
INTERVAL = keys({"low": NUMBER, "high": NUMBER, "level": NUMBER})
ESTIMATE = keys({
    "pattern": keys({
        "nodes": WHOLE, "cores_per_node": WHOLE, "burst_bytes": NUMBER,
        "stripe_count": maybe(WHOLE), "node_list": maybe(TEXT), "access": TEXT,
    }),
    "seconds": NUMBER, "interval": INTERVAL, "noisy_interval": INTERVAL, "warnings": each(TEXT),
    "leading": each(TEXT), "may_lead": each(TEXT),
    "dominant_stages": each(keys({
        "stage": TEXT, "feature": TEXT, "seconds": NUMBER, "same_as": each(TEXT),
    })),
    "features": each(of(FeaturePart)),
})  # fmt: skip
FIT = keys(
    {
        "kind": TEXT,
        "validation": keys({"within_20": SHARE, "within_30": SHARE, "mean_error": maybe(NUMBER)}),
        "training_scales": each(WHOLE), "lambda": maybe(NUMBER), "intercept": maybe(NUMBER),
        "features": each(keys({
            "name": TEXT, "coefficient": NUMBER, "stage": TEXT, "unit": TEXT,
        })),
    },
    system=TEXT, lambda_share=maybe(NUMBER), exponent=NUMBER, straggling=NUMBER, trees=WHOLE,
    members=each(TEXT),
)  # fmt: skip
TRAIN = keys({
    "model": FIT, "beside": each(FIT),
    "interval": keys({
        "level": NUMBER, "measured_ahead": ANY,
        "steps": each(keys({
            "doublings": NUMBER, "low": NUMBER, "high": NUMBER, "samples": WHOLE,
        })),
        "noisy": named(ANY),
    }),
    "choice": named(NUMBER), "training": named(ANY),
})  # fmt: skip
SCORES = {"within_20": SHARE, "within_30": SHARE}
EVALUATE = keys({
    "model": keys({"kind": TEXT, "validation": TEXT}),
    "level": said(NUMBER, "of the intervals, 0 to 1"), "excluded": WHOLE,
    "sets": each(keys({
        "name": said(TEXT, "small, medium, unconverged, training scales, or a number of nodes"),
        "samples": WHOLE, **SCORES,
        "coverage": SHARE, "beside": named(keys(SCORES)),
        "underestimated": keys({"samples": WHOLE, "mostly": maybe(named(ANY))}),
    })),
    "variability": keys({
        "samples": WHOLE, "median": maybe(NUMBER), "ninth_decile": maybe(NUMBER),
        "distribution": each(keys({"max_over_min": NUMBER, "share": NUMBER})),
    }),
})  # fmt: skip
CHOICE = joined(keys({
    "speedup": NUMBER, "clear": FLAG, "data_moves": FLAG,
    "hints": each(keys({"middleware": TEXT, "where": TEXT, "settings": named(ANY)})),
}), ESTIMATE)  # fmt: skip
RANGE = keys({"fewest": NUMBER, "most": NUMBER})
WRITE_TIME = {
    "import": keys({"imported": keys({"runs": WHOLE, "samples_in_store": WHOLE})}),
    "train": TRAIN,
    "evaluate": EVALUATE,
    "estimate": ESTIMATE,
    "estimate --trace": keys({"phases": each(joined(keys({
        "start": NUMBER, "end": NUMBER, "measured": NUMBER,
        "ratio": said(NUMBER, "measured over predicted"),
    }), ESTIMATE))}),
    "tune": keys({
        "now": ESTIMATE, "choices": each(CHOICE),
        "checkpoint": keys({
            "write_seconds": NUMBER, "young_interval": maybe(NUMBER),
            "daly_interval": maybe(NUMBER), "io_share": SHARE, "least_interval": maybe(NUMBER),
        }),
    }),
    "system list": keys({"systems": each(keys({"name": TEXT, "title": TEXT, "nodes": WHOLE}))}),
    "system show": keys({
        "system": keys({"name": TEXT, "title": TEXT, "description": TEXT}),
        "features": each(keys({"name": TEXT, "stage": TEXT, "unit": TEXT, "kind": TEXT})),
    }),
    "sample plan": keys({"plan": keys({
        "patterns": WHOLE, "added": WHOLE, "largest_run_bytes": NUMBER, "bytes": RANGE,
        "seconds": RANGE, "node_hours": NUMBER,
        "too_short": keys({"patterns": WHOLE, "seconds": NUMBER}),
        "assumed_rate_per_node": NUMBER, "rate_is": TEXT,
    })}),
    "sample run": keys({"sampling": keys(dict.fromkeys(
        ("runs", "converged", "unconverged", "waiting", "discarded", "failed", "left_aside"),
        WHOLE,
    ))}),
}  # fmt: skip


def _column(column: Column) -> Schema:
    kind = str(column.dtype)
    schema = NUMBER if kind.startswith("Float") else TEXT if kind == "String" else WHOLE
    return said(maybe(schema) if column.nullable else schema, column.meaning)


HOURS = {
    name: said(NUMBER, meaning)
    for name, meaning in (
        ("node_hours", "of all jobs concerned"),
        ("saving_node_hours", "what removing the causes saves"),
    )
}
SAVINGS = said(named(NUMBER), "node-hours that removing each cause saves")
EVENT = keys({
    "kind": said(TEXT, "slow-target, slow-node, changed-application …"),
    "subject": said(TEXT, "the target, node or program"),
    "from": said(maybe(NUMBER), "seconds since 1970"),
    "to": said(maybe(NUMBER), "seconds since 1970"), "evidence": ANY,
    "probability": said(maybe(NUMBER), "that chance alone explains it"),
    "node_hours": maybe(NUMBER),
})  # fmt: skip
EVENTS = each(EVENT)
ESTIMATED = said(NUMBER, "share of the node-hours whose nodes are estimated from ranks, 0 to 1")
NOT_JUDGED = said(WHOLE, "jobs whose logs cannot be judged; they are among `jobs`")
SITE_JOB = keys(
    {
        **{column.name: _column(column) for column in SITE_JOBS.columns},
        "nodes": said(WHOLE, "as the log names them, or estimated"),
        "nodes_estimated": said(FLAG, "whether nodes, and node-hours, are estimated from ranks"),
        "node_hours": said(NUMBER, "nodes times run time"),
        "io_stall_node_hours": said(maybe(NUMBER), "null if the log cannot be judged"),
        "saving_node_hours": said(maybe(NUMBER), "null if the log cannot be judged"),
        "savings": SAVINGS,
    },
    others_rate=said(maybe(NUMBER), "bytes per second that servers moved for others; --servers"),
)
GROUP = joined(keys(HOURS), keys(
    {"jobs": WHOLE, "not_judged": NOT_JUDGED, "estimated_share": ESTIMATED,
     "io_stall_node_hours": NUMBER, "bytes_read": WHOLE, "bytes_written": WHOLE,
     "users": WHOLE, "applications": WHOLE, "savings": SAVINGS},
    application=maybe(TEXT), user=maybe(one_of(TEXT, WHOLE)),
))  # fmt: skip
PLACE = keys(
    {"jobs": WHOLE, "operations": WHOLE, "bytes": WHOLE, "seconds": NUMBER, "rate": maybe(NUMBER),
     "relative_rate": said(maybe(NUMBER), "rate over the median of its job's others: median job"),
     "relative_rate_worst_tenth": said(maybe(NUMBER), "the same in the worst tenth of jobs")},
    file_system=said(TEXT, "mount point"), target=TEXT, host=TEXT,
)  # fmt: skip
CAUSE = joined(
    keys(HOURS), keys({"code": TEXT, "jobs": WHOLE, "applications": WHOLE, "users": WHOLE})
)
SITE_FILE = keys(
    {"file_system": said(TEXT, "mount point"), "jobs": WHOLE, "applications": WHOLE,
     "users": WHOLE, "files_per_job": said(WHOLE, "of this kind, at most"), "operations": WHOLE,
     "bytes_read": WHOLE, "bytes_written": WHOLE, "seconds": NUMBER,
     "request_bytes": maybe(NUMBER), "rate": maybe(NUMBER)},
    pattern=said(TEXT, "the path, digits replaced by #; --by pattern"),
    file=said(TEXT, "the path; --by file"),
)  # fmt: skip
PERIODIC = keys({
    "application": maybe(TEXT), "jobs": WHOLE, "node_hours": NUMBER,
    "period": said(NUMBER, "median of its jobs, in seconds"), "period_low": NUMBER,
    "period_high": NUMBER, "duty_cycle": NUMBER, "phase_bytes": NUMBER,
    "period_confidence": NUMBER, "period_of": TEXT,
})  # fmt: skip
ROWS = {
    "jobs": SITE_JOB, "applications": GROUP, "users": GROUP, "targets": PLACE, "hosts": PLACE,
    "causes": CAUSE, "files": SITE_FILE,
    "periods": PERIODIC,
}  # fmt: skip
NOTE = said(maybe(TEXT), "which node-hours are estimates, and by what")
SITE = {
    "add": of(Added),
    **{
        name: keys({name: each(row), "events": EVENTS, "note": NOTE}) for name, row in ROWS.items()
    },
    "report": keys({
        "totals": joined(keys(HOURS), keys({
            "jobs": WHOLE, "not_judged": NOT_JUDGED, "estimated_share": ESTIMATED, "note": NOTE,
            "io_stall_node_hours": NUMBER, "from": maybe(NUMBER),
            "to": maybe(NUMBER), "applications": WHOLE, "users": WHOLE,
            "known_node_hours": said(NUMBER, "of logs that tell when their job did I/O"),
            "periodic_node_hours": NUMBER, "periodic_write_node_hours": NUMBER,
        })),
        "applications": each(GROUP), "users": each(GROUP), "causes": each(CAUSE),
        "advice": each(named(ANY)), "inputs": each(named(ANY)), "worst_jobs": each(named(ANY)),
        "periods": each(PERIODIC), "events": EVENTS,
    }),
}  # fmt: skip
