"""What every `--json` document holds, as JSON Schemas: written into the package by `make docs`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import ioprism
from docs.key_words import meaning
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
    some,
)  # fmt: skip
from docs.schemas_machine import EVENT, GROUP, SERVERS, SERVERS_WATCH, SITE, WRITE_TIME
from ioprism.bottleneck_search.result import AlikeGroup, Bottleneck, ViewSummary
from ioprism.characteristics.details import (
    CommonSize,
    FileGroup,
    MpiCall,
    MpiTime,
    PerformanceEstimate,
)
from ioprism.characteristics.totals import Amount, Amplification
from ioprism.diagnosis.rank_balance import SlowestRank
from ioprism.model import verdict
from ioprism.model.verdict import Finding, History, MetricHistory, Severity
from ioprism.periodicity import results
from ioprism.periodicity import tracker as online
from ioprism.periodicity.looks import FrequencyRange
from ioprism.periodicity.many import JobPeriod
from ioprism.periodicity.results import ExpectedPhase
from ioprism.phase_detection.find import LayerPhases, Phase
from ioprism.reports.to_json import SCHEMA
from ioprism.scheduling.result import PolicyOutcome

FOLDER = Path(ioprism.__file__).parent / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

SOURCE = keys({
    "paths": said(each(TEXT), "what was read"),
    "format": said(TEXT, "of a trace, as `ioprism formats` names it"),
    "warnings": said(each(TEXT), "what is missing from the answer, and why"),
})  # fmt: skip
HEAD = keys({
    "ioprism": said(TEXT, "the version that answered"),
    "schema": said({"const": SCHEMA}, "the version of these documents"),
})  # fmt: skip
TRACE_HEAD = joined(HEAD, keys({"source": SOURCE}))

JOB = keys({
    "ranks": said(maybe(WHOLE), "of MPI, or processes of a workflow"), "processes": maybe(WHOLE),
    "hosts": said(maybe(WHOLE), "how many nodes"),
    "runtime": said(maybe(NUMBER), "seconds"),
    "executable": said(maybe(TEXT), "the command line, as far as it was recorded"),
    "start_time": said(maybe(NUMBER), "seconds since 1970"),
    "end_time": said(maybe(NUMBER), "seconds since 1970"),
    "job_id": said(maybe(TEXT), "of the scheduler"),
    "metadata": said(named(TEXT), "further facts, as the format names them"),
})  # fmt: skip
AMOUNT = of(Amount)
KINDS = {"read": AMOUNT, "write": AMOUNT, "metadata": AMOUNT}
SIZES = each(keys({
    "low": said(WHOLE, "bytes"), "high": said(maybe(WHOLE), "bytes"),
    "count": said(WHOLE, "requests"),
}))  # fmt: skip
CEILINGS = each(keys({
    "tool": TEXT, "path": TEXT, "processes": maybe(WHOLE), "request_size": maybe(WHOLE),
    "relations": each(keys({
        "operation": TEXT, "measure": TEXT, "job": NUMBER, "ceiling": NUMBER, "share": NUMBER,
    })),
}))  # fmt: skip
CHARACTERISE = keys(
    {
        "job": JOB,
        "totals": keys({
            "io_time": said(NUMBER, "seconds in I/O calls, over all processes"),
            "operations": said(WHOLE, "calls"), "bytes_read": WHOLE, "bytes_written": WHOLE,
            "files": WHOLE,
        }),
        "by_operation": keys(KINDS, other=AMOUNT),
        "by_layer": said(named(joined(AMOUNT, keys({}, **KINDS, other=AMOUNT))), "by interface"),
        "request_sizes": keys({"read": SIZES, "write": SIZES}),
        "amplification": said(each(of(Amplification)), "between layers, from the program down"),
        "common_sizes": said(each(of(CommonSize)), "of requests: the most frequent by interface"),
        "strides": said(each(of(CommonSize)), "between requests: the most frequent, from counters"),
        "file_types": said(each(of(FileGroup)), "by extension, most bytes first"),
        "mounts": said(each(of(FileGroup)), "by mount point, most bytes first"),
        "performance": said(each(of(PerformanceEstimate)), "as darshan-parser --perf estimates it"),
        "mpi": said(maybe(of(MpiTime, calls=each(of(MpiCall)))), "from Darshan's APMPI module"),
    },
    ceilings=CEILINGS,
)  # fmt: skip

LEVEL: Schema = {"enum": [level.value for level in Severity]}
FINDING = of(
    Finding,
    without=("severity",),
    level=LEVEL,
    subject=keys({"kind": TEXT, "name": maybe(one_of(TEXT, NUMBER))}),
    evidence=said(named(ANY), "the numbers that it rests on, in base units"),
    threshold=said(named(ANY), "what they were compared with"),
    details=each(named(ANY)),
)
NOT_CHECKED = each(of(verdict.NotChecked))
FINDINGS = keys({"findings": each(FINDING), "not_checked": NOT_CHECKED})

CAUSE = of(
    verdict.Cause,
    without=("facts",),
    culprit=said(named(ANY), "a file, rank, node, storage target … by its name"),
)
POSSIBLE = of(verdict.Possible, culprit=said(named(ANY), "as far as the log shows it"))
VERDICT = keys({
    "status": said({"enum": ["cause", "possible", "none", "cannot-judge"]}, "of the judgement"),
    "line": said(TEXT, "the verdict in one or two sentences, the same in every command"),
    "first": said(maybe(TEXT), "the code of the main cause"),
})  # fmt: skip
STALL = said(of(verdict.StallTime), "wall time during which I/O stalls the job")
HISTORY = said(
    of(
        History,
        lines=said(each(TEXT), "what is worth reading, as sentences"),
        metrics=each(of(MetricHistory, earlier=each(each(NUMBER)))),
    ),
    "with --site: this run against what a site's other jobs reached, and its earlier runs",
)
DIAGNOSE = joined(
    keys({"verdict": VERDICT, "io_stall": STALL}),
    of(
        verdict.Verdict,
        without=("status", "line", "io_stall", "stages", "findings", "missing", "history"),
        causes=said(each(CAUSE), "largest saving first"),
        possible=said(each(POSSIBLE), "what the log does not exclude"),
    ),
    keys({}, stages=of(verdict.Verdict)["properties"]["stages"], history=HISTORY),
)
JUDGED = joined(
    keys({
        "job": keys({
            "job_id": maybe(TEXT), "executable": maybe(TEXT), "ranks": maybe(WHOLE),
            "runtime": maybe(NUMBER), "start_time": maybe(NUMBER),
        }),
        "levels": said(named(WHOLE), "how many findings of each level"),
    }),
    FINDINGS,
    keys({
        "slowest_rank": maybe(of(SlowestRank)), "verdict": VERDICT, "io_stall": STALL,
        "causes": said(each(CAUSE), "as `diagnose` has them"),
        "possible": said(each(POSSIBLE), "as `diagnose` has them"),
        "ledger": said(each(of(verdict.LedgerLine)), "sums to the stall time"),
    }, history=HISTORY),
)  # fmt: skip
MANY_JUDGED = keys({
    "codes": said(named(WHOLE), "in how many jobs each finding comes up"),
    "jobs": each(joined(keys({"paths": each(TEXT), "warnings": each(TEXT)}), JUDGED)),
    "failures": each(TEXT),
})  # fmt: skip

BOTTLENECK = of(
    Bottleneck,
    views=said(each(each(TEXT)), "the perspectives in which it stands out"),
    peers=said(named(ANY), "what it is compared with"),
    members=said(each(named(ANY)), "records it stands for: name, seconds, excess_seconds"),
)
BOTTLENECKS = keys(
    {
        "settings": said(named(ANY), "what was asked for, defaults included"),
        "totals": said(named(maybe(NUMBER)), "of the job"),
        "views": said(each(of(ViewSummary)), "the perspectives looked at"),
        "bottlenecks": said(each(BOTTLENECK), "worst first"),
        "groups": said(each(of(AlikeGroup)), "those that are alike, with `--method slope`"),
        "found": said(WHOLE, "bottlenecks, those on other pages included"),
        "unexplained": said(WHOLE, "bottlenecks that no rule explains"),
        "coverage": said(maybe(NUMBER), "share of bottlenecks that a rule explains"),
    }
)
PAGE = keys({"number": WHOLE, "per_view": maybe(WHOLE)})
PARTS = keys({"parts": named(each(named(ANY))), "calls": said(each(named(ANY)), "the longest")})
INSPECT = {
    "anyOf": [
        joined(TRACE_HEAD, keys({"bottleneck": BOTTLENECK}), PARTS),
        joined(TRACE_HEAD, keys({"finding": FINDING}), PARTS),
    ]
}

PHASE = of(Phase, without=("bytes_read", "bytes_written"), kind=said(TEXT, "what is done"))
PHASES = keys({"layers": named(of(LayerPhases, phases=each(PHASE)))})

PERIOD = maybe(of(results.Period, without=("phases",)))
NAMED_PERIOD = joined(
    of(results.NamedPeriod, without=("period",)),
    some(
        of(results.Period),
        "seconds",
        "valid_ranges",
        "false_alarm_probability",
        "confidence",
        "certainty",
        "repetitions",
        "pattern",
        "bytes_share",
        "time_share",
    ),
)
PERIODICITY = of(
    results.Periodicity,
    without=("direction", "periods"),
    period=PERIOD,
    slotted=PERIOD,
    rhythms=said(each(NAMED_PERIOD), "all periods, the dominant one first"),
    signal=keys({
        "samples": WHOLE, "frequency": NUMBER, "start": NUMBER, "end": NUMBER, "direction": TEXT,
    }),
)  # fmt: skip
ASYNCHRONOUS = keys({
    "direction": TEXT, "requests": WHOLE, "bytes": NUMBER,
    "required": said(keys({"peak": NUMBER, "mean": NUMBER}), "B: until requests are waited for"),
    "measured": said(keys({"peak": NUMBER, "mean": NUMBER}), "T: until they really ended"),
    "waited": said(NUMBER, "seconds that ranks waited, summed over them"),
    "hidden": said(NUMBER, "share of the requests that ended before they were waited for"),
})  # fmt: skip
MANY_PERIODS = keys({
    "jobs": said(each(of(JobPeriod)), "the clearest period first"),
    "failed": said(each(TEXT), "what could not be read, and why"),
})  # fmt: skip
SCHEDULE = keys({
    "workload": keys({
        "source": TEXT, "bandwidth": NUMBER, "horizon": said(NUMBER, "seconds simulated"),
        "seeds": WHOLE, "load": said(NUMBER, "share of the time that the file system is needed"),
    }),
    "outcomes": each(joined(of(PolicyOutcome), keys({
        "gain": said(maybe(keys({"utilisation": NUMBER, "io_slowdown": NUMBER})),
                     "relative, over fair share"),
    }))),
})  # fmt: skip
PERIOD_BY = keys(
    {"asynchronous": said(each(ASYNCHRONOUS), "of traces that tell when requests are waited for")},
    by=TEXT,
    parts=each(keys({"name": TEXT, "bytes": NUMBER, "period": PERIOD})),
)
WATCH = keys({
    "job": TEXT, "messages": WHOLE, "ranks": maybe(WHOLE),
    "time": said(NUMBER, "seconds since the job started"),
    "window": said({**each(NUMBER), "minItems": 2, "maxItems": 2}, "seconds looked at"),
    "period": PERIOD, "next_phase": maybe(of(ExpectedPhase)),
    "direction": said(TEXT, "of the requests that the period is of"),
    "phase_distance": said(maybe(NUMBER), "seconds between phases so far, period or not"),
    "final": said(FLAG, "whether it is the answer for a whole job that seems to be over"),
    "probabilities": each(of(FrequencyRange)), "change": maybe(of(online.PeriodChange)),
})  # fmt: skip

REPORT = joined(
    keys({"verdict": joined(VERDICT, keys({
        "io_share": said(maybe(NUMBER), "of the time of all ranks, in I/O calls"),
    }))}),
    CHARACTERISE,
    FINDINGS,
    keys({
        "diagnosis": DIAGNOSE, "phases": maybe(PHASES), "bottlenecks": maybe(BOTTLENECKS),
        "period": maybe(PERIODICITY),
        "timeline": keys({
            "start": NUMBER, "end": NUMBER, "calls": WHOLE,
            "marks": said(WHOLE, "what the page draws: calls, or several joined"),
            "whole": said(FLAG, "whether each call is drawn"), "source": TEXT,
        }),
    }),
)  # fmt: skip
KEPT = joined(FINDING, keys({
    "seconds_before": maybe(NUMBER), "level_before": LEVEL, "seconds_saved": maybe(NUMBER),
}))  # fmt: skip
DIFFERENCE = keys({
    "before": said(NUMBER, "seconds of a typical run"), "after": NUMBER,
    "saved": said(NUMBER, "seconds; its interval belongs to the same test"),
    "interval": said(maybe(keys({"low": NUMBER, "high": NUMBER, "level": NUMBER})),
                     "of saved; null: no side was repeated"),
    "change": said(maybe(NUMBER), "growth over before"),
    "noise": said(maybe(NUMBER), "standard deviation of one run, outliers apart, over before"),
    "beyond_noise": said(maybe(FLAG), "whether the interval excludes zero"),
})  # fmt: skip
COMPARE = keys({
    "before": SOURCE, "after": SOURCE,
    "verdict": said(TEXT, "faster, slower, within noise, or not repeated"),
    "runs": keys({"before": WHOLE, "after": WHOLE}),
    "promised": said(maybe(NUMBER), "seconds that the diagnosis before said can be saved"),
    "promise": said(maybe(keys({
        "seconds": NUMBER, "low": NUMBER, "high": NUMBER,
        "codes": said(each(TEXT), "causes that the change removed, else the main cause"),
        "removed": FLAG,
    })), "the same with its interval"),
    "delivered": said(maybe(NUMBER), "seconds that the runs after are shorter"),
    "run_time": maybe(DIFFERENCE), "io_stall": maybe(DIFFERENCE),
    "causes": each(keys({
        "code": TEXT, "title": TEXT, "culprit": named(ANY), "before": NUMBER, "low": NUMBER,
        "high": NUMBER, "after": NUMBER, "removed": FLAG,
    })),
    "not_comparable": said(each(TEXT), "program, ranks or bytes that differ between the sides"),
    "metrics": each(keys({
        "name": TEXT, "before": maybe(NUMBER), "after": maybe(NUMBER),
        "ratio": said(maybe(NUMBER), "after over before"),
        "better": said(maybe(FLAG), "null: neither, or within the noise"),
    })),
    "findings": keys({"gone": each(FINDING), "new": each(FINDING), "kept": each(KEPT)}),
}, history=HISTORY)  # fmt: skip
RECORDING = keys({
    "command": each(TEXT), "tracer": TEXT,
    "cost": said(maybe(keys({"per_call": NUMBER, "per_process": NUMBER})),
                 "seconds that the tracer adds, measured here"),
    "untraced_seconds": said(maybe(NUMBER), "of the run that --untraced adds"),
    "runs": each(keys({
        "folder": TEXT, "seconds": NUMBER, "exit_code": maybe(WHOLE), "signal": maybe(WHOLE),
        "started": said(NUMBER, "since 1970"),
        "left_running": said(WHOLE, "processes that did not end with the program"),
    })),
    "overhead": said(maybe(keys({"seconds": NUMBER, "calls": WHOLE, "processes": WHOLE})),
                     "what the tracer added to the last run, summed over processes"),
    "comparison": said(maybe(named(ANY)), "with --against: what `compare` prints"),
    "trials": said(each(keys({
        "name": TEXT, "hints": named(TEXT), "variables": named(TEXT),
        "status": said(TEXT, "gain, no gain, ignored, failed, or undecided"),
        "seconds": each(NUMBER),
        "requests": said(maybe(each(WHOLE)), "reads and writes without and with it"),
        "run_time": maybe(named(ANY)), "script": said(each(TEXT), "lines for a job script"),
    })), "with --try: what each change brought"),
})  # fmt: skip
RECORD = keys({
    "recording": RECORDING, "report": said(maybe(REPORT), "null: no I/O was recorded"),
})  # fmt: skip
CHECKS = keys({"checks": each(keys({
    "what": TEXT, "status": said(TEXT, "ok, missing, or no: there but unusable"), "found": TEXT,
    "hint": TEXT,
}))})  # fmt: skip
FORMATS = keys({
    "formats": each(keys({"name": TEXT, "available": FLAG},
                         missing=TEXT, title=TEXT, tells=each(TEXT))),
    "facts": named(TEXT),
})  # fmt: skip
RULES = keys({
    "rules": each(keys({
        "code": TEXT, "level": LEVEL, "interface": TEXT, "question": TEXT,
        "thresholds": each(TEXT), "aliases": each(TEXT), "advice": TEXT,
    })),
    "thresholds": each(keys({
        "name": TEXT, "default": NUMBER, "meaning": TEXT, "unit": TEXT, "source": TEXT,
    })),
})  # fmt: skip

# Commands whose document says what was read; then those of which none does.
OF_TRACES = {
    "report": REPORT, "record": RECORD, "diagnose": DIAGNOSE, "characterise": CHARACTERISE,
    "bottlenecks": joined(BOTTLENECKS, keys({}, page=PAGE)), "phases": PHASES,
    "schedule": SCHEDULE,
    "compare": COMPARE, "explore": keys({"address": said(TEXT, "of the page")}),
    **{f"servers {name}": body for name, body in SERVERS.items()},
    **{f"write-time {name}": body for name, body in WRITE_TIME.items()},
}  # fmt: skip
OF_NOTHING = {
    "formats": FORMATS, "rules": RULES, "record --check": CHECKS,
    **{f"site {name}": body for name, body in SITE.items()},
}  # fmt: skip

# Explained once on the page, and linked from wherever they are.
PARTS_OF_SEVERAL = {
    "A finding": FINDING, "A cause": CAUSE, "A bottleneck": BOTTLENECK, "Something not checked":
    NOT_CHECKED["items"], "A period": of(results.Period, without=("phases",)),
    "An amount": AMOUNT, "A history": HISTORY, "An event": EVENT, "A group of jobs": GROUP,
}  # fmt: skip
WHOLE_ANSWERS = {
    "diagnose": DIAGNOSE, "bottlenecks": BOTTLENECKS, "phases": PHASES, "period": PERIODICITY,
    "write-time estimate": WRITE_TIME["estimate"],
}  # fmt: skip


def documents() -> dict[str, Schema]:
    """Return the schema of every document, by the command that prints it."""
    return {
        **{name: joined(TRACE_HEAD, body) for name, body in OF_TRACES.items()},
        **{name: joined(HEAD, body) for name, body in OF_NOTHING.items()},
        "insights": {"anyOf": [joined(TRACE_HEAD, JUDGED), joined(TRACE_HEAD, MANY_JUDGED)]},
        "inspect": INSPECT,
        "period": {
            "anyOf": [joined(TRACE_HEAD, PERIODICITY, PERIOD_BY), joined(TRACE_HEAD, MANY_PERIODS)]
        },
        "watch": WATCH,
        "servers watch": SERVERS_WATCH,
    }


def file_name(command: str) -> str:
    """Return the name of a command's schema in the package."""
    return f"{command.replace(' --', ' ').replace(' ', '-')}.json"


def write(folder: Path) -> None:
    """Write every schema."""
    folder.mkdir(exist_ok=True)
    for command, schema in documents().items():
        option = "--json-lines" if command.endswith("watch") else "--json"
        head = {"$schema": DIALECT, "title": f"ioprism {command} {option}"}
        text = json.dumps({**head, **schema}, indent=1, ensure_ascii=False)
        (folder / file_name(command)).write_text(f"{text}\n", encoding="utf-8")


def page() -> str:
    """Return the reference page: every key of every document."""
    lines = ["# JSON documents\n"]
    lines += ["Every `--json` document, and every line of `--json-lines`, has a JSON Schema"]
    lines += [
        "in the package, under `ioprism/schemas/`. Times are seconds, sizes bytes, rates bytes"
    ]
    lines += ["per second, shares from 0 to 1. [Versions](json-versions.md) says what may change,"]
    lines += ["and when. A key that is not always there is marked `?`; `[]` is a list, `*` any"]
    lines += ["name.\n"]
    lines += ["## Keys of every document\n"]
    lines += [
        "`source` is missing where nothing is read (`formats`, `rules`), and where a store is"
    ]
    lines += ["asked (`site`); a line of `watch` has none of them.\n"]
    lines += [*_table(_rows(TRACE_HEAD)), ""]
    for command, schema in sorted(documents().items()):
        lines += [f"## ioprism {command}\n", f"Schema: `{file_name(command)}`\n"]
        parts = [_without_head(one) for one in schema.get("anyOf", [schema])]
        lines += [*_table(row for one in parts for row in _rows(one)), ""]
    lines += ["## Parts of several documents\n"]
    for name, schema in PARTS_OF_SEVERAL.items():
        lines += [f"### {name}\n", *_table(_rows(schema)), ""]
    return "\n".join(lines)


def _without_head(schema: Schema) -> Schema:
    head = TRACE_HEAD["properties"]
    rest = {key: value for key, value in schema["properties"].items() if value != head.get(key)}
    return {**schema, "properties": rest}


def _table(rows: Iterable[str]) -> Iterator[str]:
    yield from ("| key | type | meaning |", "|---|---|---|")
    yield from dict.fromkeys(rows)


def _rows(schema: Schema, path: str = "") -> Iterator[str]:
    for key, value in schema.get("properties", {}).items():
        mark = "" if key in schema["required"] else "?"
        where = f"{path}{key}{mark}"
        links = tuple(_links(value))
        words = _description(value) or ("" if links else meaning(where))
        told = (words.replace("|", "\\|"), *links)
        yield f"| `{where}` | {_type(value)} | {'; '.join(filter(None, told))} |"
        yield from _below(value, where)


def _description(value: Schema) -> str:
    """Its own words, or those of what it is a list of, or may be."""
    inner = (value.get("items", {}), *value.get("anyOf", ()))
    told = (one.get("description", "") for one in (value, *inner))
    return next(filter(None, told), "")


def _below(value: Schema, where: str) -> Iterator[str]:
    for one in value.get("anyOf", [value]):
        if _explained(one):
            continue
        if "properties" in one:
            yield from _rows(one, f"{where}.")
        elif "items" in one:
            yield from _below(one["items"], f"{where}[]")
        elif isinstance(one.get("additionalProperties"), dict):
            yield from _below(one["additionalProperties"], f"{where}.*")


def _links(value: Schema) -> Iterator[str]:
    """Where the page explains what a value holds, if that is not below its own row."""
    for one in value.get("anyOf", [value]):
        found = _explained(one) or _explained(one.get("items", {}))
        if found:
            yield found


def _explained(value: Schema) -> str:
    bare = {key: part for key, part in value.items() if key != "description"}
    for name, schema in PARTS_OF_SEVERAL.items():
        if bare == schema:
            return f"[{name[0].lower()}{name[1:]}](#{name.lower().replace(' ', '-')})"
    for command, body in WHOLE_ANSWERS.items():
        if bare == body:
            return f"as [`ioprism {command}`](#ioprism-{command.replace(' ', '-')}) has it"
    return ""


def _type(value: Schema) -> str:
    if "enum" in value or "const" in value:
        return ", ".join(f"`{item}`" for item in value.get("enum", [value.get("const")]))
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(_type, value["anyOf"])))
    kind = value.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
