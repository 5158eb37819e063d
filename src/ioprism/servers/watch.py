"""Who loads the file system now: counters asked for in rounds, as rates of jobs, users and targets.

A rate is the growth of a counter since its last answer, divided by the time between the two
answers by this machine's steady clock. So neither a server whose clock steps nor one that did not
answer for a while gives a false rate. A counter that fell or restarted counts from 0; an entry
that is new on a target seen before counts in full; the first answer of a target only sets the
mark. What has not been seen for ten minutes is forgotten, as Lustre itself does.
"""

from __future__ import annotations

import pwd
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from ioprism.errors import OutputError, TraceError
from ioprism.model.counters import (
    COUNTERS,
    FILE_SYSTEM,
    NODE_TOTAL,
    SECOND,
    SERIES_KEY,
    VALUES,
    ReadingOptions,
    Tally,
)
from ioprism.servers.attribution import identifier
from ioprism.servers.formats.lustre import JOB_CLEANUP_SECONDS
from ioprism.servers.limits import ROWS_IN_MEMORY
from ioprism.servers.raw_files import (
    CommandSource,
    NoAnswerError,
    PolledSource,
    find_counter_reader,
)
from ioprism.servers.store import add_watched, store_for_writing
from ioprism.text import printable

STALE_STEPS = 2.5  # sampling steps for which the rate of a followed record holds
CLOCK_STEP = 5.0  # seconds: more than any answer takes
AT_ONCE = 64  # sources asked at the same time
USER_PARTS = re.compile(r"^[^:]+:([^:]+):")  # of a job identifier such as <job>:<user>:<node>
USER_NUMBER = re.compile(r"\.(\d+)$")  # of one such as <program>.<uid>
OTHER, UNKNOWN = "other", "unknown"
RATES = ("read", "write", "operations", "opens")  # B/s, B/s, 1/s, 1/s
MOVED = {"read": "br", "write": "bw"}

NO_ANSWER = COUNTERS.empty().with_columns(now=pl.lit(0.0))
# What is known of a counter: its last sample, and how it has grown to that since the one before.
NO_COUNTERS = pl.DataFrame(
    schema={
        **COUNTERS.schema,
        "seen": pl.Float64,
        "elapsed": pl.Float64,
        "follows": pl.Boolean,
        **{f"{name}_growth": pl.Int64 for name in VALUES},
    }
)


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """What to ask, how often, and what to keep."""

    interval: float = 30.0  # seconds from one round to the next
    timeout: float = 10.0  # seconds that a source may take
    top: int = 20  # jobs, users and targets shown; the rest is one row
    store: Path | None = None
    timezone: str = "UTC"
    users_command: str | None = None  # prints `job user` lines
    shell: bool = False


@dataclass(frozen=True, slots=True)
class LoadRow:
    """What a job, a user or a target does now."""

    name: str
    read: float  # bytes per second
    write: float
    operations: float  # requests per second
    opens: float
    share: float  # of all bytes moved now
    user: str = ""  # of a job


@dataclass(frozen=True, slots=True)
class LoadRound:
    """The file system in one round."""

    time: float  # seconds since 1970
    number: int  # of the round, from 1
    seconds: float  # that the round took
    rates: Mapping[str, float]  # of the whole file system
    moved: Mapping[str, int]  # bytes read and written since the watch began
    unattributed: float  # bytes per second of no job
    jobs: tuple[LoadRow, ...]
    users: tuple[LoadRow, ...]
    targets: tuple[LoadRow, ...]
    counts: Mapping[str, int]  # jobs, users, targets with load; sources; sources that answered
    notes: tuple[str, ...]  # what went wrong or looks odd


@dataclass(slots=True)
class _SourceState:
    source: PolledSource
    answered: float | None = None  # steady seconds
    failing_since: float | None = None  # wall seconds


@dataclass(slots=True)
class LoadWatch:
    """Asks all sources in rounds and keeps what the next round needs."""

    sources: Sequence[PolledSource]
    options: WatchPlan
    wall: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    moved: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MOVED, 0))
    number: int = 0
    held: list[pl.DataFrame] = field(default_factory=list)  # samples that wait for the store
    _states: list[_SourceState] = field(default_factory=list)
    _last: pl.DataFrame = field(default_factory=lambda: NO_COUNTERS)
    _targets: dict[str, float] = field(default_factory=dict)  # when each last answered, steady
    _offsets: dict[str, float] = field(default_factory=dict)  # of clocks, seconds
    _users: dict[str, str] = field(default_factory=dict)
    _notes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._states = [_SourceState(source) for source in self.sources]

    def round(self) -> LoadRound:
        """Ask every source once, and return what changed since the last round."""
        begun = self.steady()
        self.number += 1
        self._notes = {}
        self._compare_clocks({"this machine": self.wall() - begun})
        answers = self._ask()
        self._advance(answers)
        self._forget(begun)
        if self.options.store is not None:
            self._keep([table for table, _, _ in answers])
        return self._result(begun)

    def _ask(self) -> list[tuple[pl.DataFrame, bool, float]]:
        """Return the answers: samples, whether they follow a file, and when they came."""
        with (
            tempfile.TemporaryDirectory(prefix="ioprism-") as folder,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            places = [Path(folder) / f"answer{n}" for n in range(len(self._states) + 1)]
            users = pool.submit(self._ask_users, places[-1])
            asked = [
                pool.submit(self._fetch, state.source, place)
                for state, place in zip(self._states, places, strict=False)
            ]
            answers = []
            for state, place, reply in zip(self._states, places, asked, strict=False):
                wall, steady, trouble = reply.result()
                if trouble is None and wall is not None:
                    table, trouble = self._read(state.source, place, wall)
                    if table is not None:
                        answers.append((table, state.source.follows, steady))
                    place.unlink(missing_ok=True)
                self._note_answer(state, steady, trouble)
            users.result()
        return answers

    def _fetch(self, source: PolledSource, place: Path) -> tuple[float | None, float, str | None]:
        """Return when the answer came, by both clocks, and why there is none."""
        try:
            there = source.fetch(place, self.options.timeout)
        except NoAnswerError as error:
            return None, self.steady(), str(error)
        return (self.wall() if there else None), self.steady(), None

    def _read(
        self, source: PolledSource, place: Path, wall: float
    ) -> tuple[pl.DataFrame | None, str | None]:
        reader = find_counter_reader(place)
        if reader is None:
            return None, "the answer is not counters in a known format"
        if source.follows and reader.name not in ("mmpmon", "counter-table"):
            return None, "only records of one line can be followed: use --file or --command"
        tally = Tally()
        options = ReadingOptions(round(wall * SECOND), self.options.timezone)
        try:
            table = pl.concat([COUNTERS.empty(), *reader.read(place, options, tally)])
        except TraceError as error:
            return None, str(error).splitlines()[0]
        for warning in tally.warnings():
            self._note(f"{source.name}: {warning.replace(place.name, 'the answer')}")
        return table, None

    def _note_answer(self, state: _SourceState, steady: float, trouble: str | None) -> None:
        if trouble is None:
            if state.failing_since is not None:
                self._note(f"{state.source.name}: answers again")
            state.failing_since, state.answered = None, steady
            return
        if state.failing_since is None:
            state.failing_since = self.wall()
        since = time.strftime("%H:%M:%S", time.localtime(state.failing_since))
        self._note(f"{state.source.name}: {trouble}; no counters since {since}")

    def _note(self, text: str) -> None:
        self._notes[printable(text)] = None

    def _ask_users(self, place: Path) -> None:
        """Learn whose jobs are running; an answer that does not come leaves what was known."""
        command = self.options.users_command
        if command is None:
            return
        try:
            CommandSource(command, shell=self.options.shell).fetch(place, self.options.timeout)
        except NoAnswerError as error:
            self._note(f"{command}: {error}")
            return
        lines = place.read_text(encoding="utf-8", errors="replace").splitlines()
        words = (line.replace(",", " ").split() for line in lines)
        self._users = {pair[0]: pair[1] for pair in words if len(pair) >= 2}

    def _compare_clocks(self, offsets: Mapping[str, float]) -> None:
        """Note clocks that stepped since they were last compared with the steady one."""
        limit = CLOCK_STEP + self.options.timeout
        for name, offset in offsets.items():
            step = offset - self._offsets.get(name, offset)
            if abs(step) > limit:
                self._note(f"the clock of {name} stepped by {step:+.0f} s")
            self._offsets[name] = offset

    def _advance(self, answers: Sequence[tuple[pl.DataFrame, bool, float]]) -> None:
        """Compare the answers with what was known, and make them what is known."""
        timed = [(table.with_columns(now=pl.lit(now)), follows) for table, follows, now in answers]
        polled = pl.concat([NO_ANSWER, *(table for table, follows in timed if not follows)])
        self._compare(polled.unique(SERIES_KEY, keep="last", maintain_order=True), follows=False)
        for table in (table for table, follows in timed if follows):
            numbered = table.with_columns(step=pl.int_range(pl.len()).over(*SERIES_KEY))
            for step in numbered.sort("step").partition_by("step", include_key=False):
                self._compare(step, follows=True)
        own = polled.filter(pl.col("job").is_null()).group_by("server", "now")
        ahead = own.agg(ahead=pl.col("time_us").max() / SECOND - pl.col("now").first())
        self._compare_clocks(dict(ahead.select("server", "ahead").iter_rows()))
        for table, _ in timed:
            self._targets |= dict(table.select("server", "now").unique("server").iter_rows())

    def _compare(self, latest: pl.DataFrame, *, follows: bool) -> None:
        if not latest.height:
            return
        before = self._last.select(*COUNTERS.names, "seen")
        known = latest.join(before, on=SERIES_KEY, how="left", nulls_equal=True, suffix="_before")
        here = self._offsets["this machine"]
        clocks = {name: at + self._offsets.get(name, here) for name, at in self._targets.items()}
        previous, previous_clock = (
            pl.col("server").replace_strict(times, default=None, return_dtype=pl.Float64)
            for times in (self._targets, clocks)
        )
        seen_before = pl.col("seen").is_not_null()
        began_later = pl.col("since_us") > pl.col("since_us_before")
        fell = pl.any_horizontal(pl.col(n).fill_null(0) < pl.col(f"{n}_before") for n in VALUES)
        restarts = seen_before & (began_later | fell).fill_null(value=False)
        # An entry older than the target's last answer was missing from it, and is not new.
        began = pl.col("since_us") / SECOND + CLOCK_STEP >= previous_clock
        fresh = ~seen_before & pl.col("job").is_not_null() & previous.is_not_null()
        fresh &= began.fill_null(value=True)
        elapsed = pl.col("now") - pl.coalesce("seen", previous)
        if follows:  # their own times tell, unless the clock stepped
            own = (pl.col("time_us") - pl.col("time_us_before")) / SECOND
            elapsed = pl.when(own > 0).then(own).otherwise(elapsed)
        whole = restarts & (pl.col("source") != NODE_TOTAL)  # an unmount takes its part away
        growth = {
            name: pl.when(whole | fresh).then(pl.col(name))
            .when(seen_before & ~restarts)
            .then(pl.col(name) - pl.col(f"{name}_before").fill_null(0))
            .otherwise(0).fill_null(0)
            for name in VALUES
        }  # fmt: skip
        grown = known.select(
            *COUNTERS.names,
            pl.col("now").alias("seen"),
            pl.lit(follows).alias("follows"),
            elapsed.alias("elapsed"),
            restarts.alias("restarted"),
            **{f"{name}_growth": value for name, value in growth.items()},
        )
        resets = grown.filter("restarted")
        if resets.height:
            names = ", ".join(resets["server"].unique().sort().head(3))
            self._note(f"{resets.height} counters were reset or restarted ({names})")
        others = self._last.join(grown, on=SERIES_KEY, how="anti", nulls_equal=True)
        self._last = pl.concat([others, grown.select(self._last.columns)])
        of_targets, _ = _split_levels(grown)
        for direction, name in MOVED.items():
            self.moved[direction] += int(of_targets[f"{name}_growth"].sum())

    def _forget(self, now: float) -> None:
        self._last = self._last.filter(pl.col("seen") > now - JOB_CLEANUP_SECONDS)
        gone = [name for name, seen in self._targets.items() if seen <= now - JOB_CLEANUP_SECONDS]
        for name in gone:
            self._note(f"{name}: no counters for {JOB_CLEANUP_SECONDS:.0f} s; forgotten")
            self._targets.pop(name)
            self._offsets.pop(name, None)

    def _keep(self, tables: Iterable[pl.DataFrame]) -> None:
        """Write the samples; those of a store that is in use wait for the next round."""
        self.held += [table for table in tables if table.height]
        if not self.held or self.options.store is None:
            return
        try:
            with store_for_writing(self.options.store) as store:
                add_watched(store, pl.concat(self.held))
            self.held = []
        except OutputError as error:
            self._note(f"not stored yet: {str(error).splitlines()[0]}")
            while sum(table.height for table in self.held) > ROWS_IN_MEMORY:
                self._note(f"{self.held.pop(0).height} samples are lost: the store was in use")

    def _result(self, begun: float) -> LoadRound:
        rates = self._rates_now(begun)
        own, of_jobs = _split_levels(rates)
        whole = own.select(pl.col(RATES).sum()).row(0, named=True)
        total = whole["read"] + whole["write"]
        named = of_jobs.filter(pl.col("job") != "").with_columns(identifier())
        by_job = _by(named, "id")
        users = {
            job: self._user_of(raw, job) for job, raw in by_job.select("id", "raw").iter_rows()
        }
        by_user = _by(
            named.with_columns(user=pl.col("id").replace_strict(users, default=UNKNOWN)), "user"
        )
        label = pl.when(pl.col("part") == "").then("server").otherwise(
            pl.concat_str("server", pl.lit(" "), "part")
        )  # fmt: skip
        by_target = _by(own.with_columns(target=label), "target")
        attributed = by_job.select(pl.col("read").sum() + pl.col("write").sum()).item()
        top = self.options.top
        return LoadRound(
            time=self.wall(),
            number=self.number,
            seconds=self.steady() - begun,
            rates=whole,
            moved=dict(self.moved),
            unattributed=max(0.0, total - attributed),
            jobs=_top(by_job, "id", top, total, users),
            users=_top(by_user, "user", top, total),
            targets=_top(by_target, "target", top, total),
            counts={
                "jobs": _active(by_job),
                "users": _active(by_user),
                "targets": by_target.height,
                "sources": len(self._states),
                "answered": sum(state.failing_since is None for state in self._states),
            },
            notes=tuple(self._notes),
        )

    def _rates_now(self, begun: float) -> pl.DataFrame:
        """Return the rate of every counter that was answered in this round or still holds."""
        age = begun - pl.col("seen")
        holds = pl.col("follows") & (age < STALE_STEPS * pl.col("elapsed"))
        now = self._last.filter(((pl.col("seen") >= begun) | holds) & (pl.col("elapsed") > 0))
        rate = {name: pl.col(f"{name}_growth") / pl.col("elapsed") for name in VALUES}
        return now.select(
            *SERIES_KEY,
            read=rate["br"],
            write=rate["bw"],
            operations=rate["rdc"] + rate["wc"],
            opens=rate["oc"],
        )

    def _user_of(self, raw: str, job: str) -> str:
        """Return who runs a job: as the scheduler says, else as the identifier does."""
        known = self._users.get(job) or self._users.get(raw)
        match = USER_PARTS.match(raw) or USER_NUMBER.search(raw)
        if known or match is None:
            return known or UNKNOWN
        if not match[1].isdecimal():
            return match[1]
        try:
            return pwd.getpwuid(int(match[1])).pw_name
        except (KeyError, OverflowError):
            return f"uid {match[1]}"


def _split_levels(samples: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of targets and those of jobs; nothing is counted twice among the first.

    A node's total holds its file systems; a target that only counts jobs is their sum.
    """
    of_jobs = samples.filter(pl.col("job").is_not_null())
    own = samples.filter(pl.col("job").is_null())
    parts = own.filter(pl.col("source") == FILE_SYSTEM)["server"].unique()
    doubled = (pl.col("source") == NODE_TOTAL) & pl.col("server").is_in(parts.implode())
    own = own.filter(~doubled)
    only_jobs = of_jobs.filter(~pl.col("server").is_in(own["server"].unique().implode()))
    return pl.concat([own, only_jobs]), of_jobs


def _by(rates: pl.DataFrame, key: str) -> pl.DataFrame:
    """Add up the rates of each job, user or target, most bytes first."""
    raw = pl.col("job").first().alias("raw")
    return rates.group_by(key).agg(raw, pl.col(RATES).sum()).sort(
        pl.col("read") + pl.col("write"), pl.col("operations") + pl.col("opens"), key,
        descending=[True, True, False],
    )  # fmt: skip


def _active(table: pl.DataFrame) -> int:
    return table.filter(pl.sum_horizontal(RATES) > 0).height


def _top(
    table: pl.DataFrame, key: str, top: int, total: float, users: Mapping[str, str] | None = None
) -> tuple[LoadRow, ...]:
    """Return the first rows, and one for all others."""
    moved = (pl.col("read") + pl.col("write")) / total if total else pl.lit(0.0)
    busy = table.filter(pl.sum_horizontal(RATES) > 0).with_columns(share=moved)
    amounts = (*RATES, "share")
    rows = []
    for row in busy.head(top).select(key, *amounts).iter_rows(named=True):
        name = row.pop(key)
        rows.append(LoadRow(printable(str(name)), **row, user=(users or {}).get(name, "")))
    if busy.height > top:
        rows.append(LoadRow(OTHER, *busy.slice(top).select(pl.col(amounts).sum()).row(0)))
    return tuple(rows)
