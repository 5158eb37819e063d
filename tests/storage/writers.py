"""Every command that writes, over old data that must survive whatever happens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from ioprism.cli import main
from ioprism.model.samples import format_node_list
from tests.analyses.write_time.machines import titan_samples
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
OTHER = TEST_DATA / "darshan/e_mpiio_collective.darshan"
SIMULATION = ("--servers", "2", "--days", "1")
PLAN = ("--scales", "1", "--max-burst", "1MB")


@dataclass(frozen=True, slots=True)
class Writer:
    """A command that writes to a target, in a folder of its own."""

    name: str
    target: str  # what is at stake, within the folder
    command: Callable[[Path, Path], list[str]]  # of the inputs and the folder
    force: bool = True


def _jobs(inputs: Path) -> list[str]:
    return ["--jobs", str(inputs / "load/jobs.sacct"), "--min-runtime", "0"]


WRITERS = (
    Writer("report", "page.html", lambda _, o: ["report", str(LOG), "-o", str(o / "page.html")]),
    Writer("period", "page.html", lambda _, o: ["period", str(LOG), "-o", str(o / "page.html")]),
    Writer(
        "compare",
        "page.html",
        lambda _, out: ["compare", str(LOG), str(OTHER), "-o", str(out / "page.html")],
    ),
    Writer("convert csv", "t.csv", lambda _, out: ["convert", str(LOG), str(out / "t.csv")]),
    Writer("convert chrome", "t.json.gz", lambda _, o: ["convert", str(LOG), str(o / "t.json.gz")]),
    Writer("convert store", "t.store", lambda _, out: ["convert", str(LOG), str(out / "t.store")]),
    Writer(
        "bottlenecks export",
        "b.csv",
        lambda _, out: ["bottlenecks", str(LOG), "--export", str(out / "b.csv")],
    ),
    Writer(
        "stages",
        "stages",
        lambda _, out: ["bottlenecks", str(LOG), "--stages", str(out / "stages")],
        force=False,
    ),
    Writer(
        "servers ingest",
        "store",
        lambda i, out: ["servers", "ingest", str(i / "more.csv"), "--store", str(out / "store")],
        force=False,
    ),
    Writer(
        "servers jobs export",
        "jobs.parquet",
        lambda i, out: [
            "servers", "jobs", "--store", str(i / "store"), *_jobs(i),
            "--export", str(out / "jobs.parquet"),
        ],
    ),
    Writer(
        "servers report",
        "fleet.html",
        lambda i, out: [
            "servers", "report", "--store", str(i / "store"), *_jobs(i),
            "-o", str(out / "fleet.html"),
        ],
    ),
    Writer(
        "servers simulate",
        "load",
        lambda _, out: ["servers", "simulate", str(out / "load"), *SIMULATION],
    ),
    Writer(
        "write-time train",
        "model.json",
        lambda i, out: [
            "write-time", "train", "--store", str(i / "runs.db"), "-o", str(out / "model.json"),
            "--model", "lasso",
        ],
    ),
    Writer(
        "write-time import",
        "runs.db",
        lambda i, out: [
            "write-time", "import", str(i / "more-runs.csv"), "--system", "titan",
            "--store", str(out / "runs.db"),
        ],
        force=False,
    ),
    Writer(
        "write-time system init",
        "machine.toml",
        lambda _, out: [
            "write-time", "system", "init", "--directory", str(out),
            "-o", str(out / "machine.toml"),
        ],
    ),
    Writer(
        "write-time evaluate",
        "errors.html",
        lambda i, out: [
            "write-time", "evaluate", "--store", str(i / "all-runs.db"), "--model", "titan",
            "-o", str(out / "errors.html"),
        ],
    ),
    Writer(
        "write-time sample plan",
        "runs.db",
        lambda _, out: [
            "write-time", "sample", "plan", "--store", str(out / "runs.db"), *PLAN, "--seed", "2",
        ],
        force=False,
    ),
    Writer(
        "write-time sample run",
        "runs.db",
        lambda _, out: [
            "write-time", "sample", "run", "--store", str(out / "runs.db"),
            "--directory", str(out), "--launcher", "builtin", "--max-runs", "1", "--pause", "0",
        ],
        force=False,
    ),
    Writer(
        "write-time sample script",
        "job.sh",
        lambda i, out: [
            "write-time", "sample", "script", "--store", str(i / "runs.db"),
            "--directory", str(out), "--scheduler", "slurm", "--nodes", "2",
            "-o", str(out / "job.sh"),
        ],
    ),
    Writer(
        "servers validate",
        "record.json",
        lambda _, out: [
            "servers", "validate", "--run", str(out / "data"), "--bytes", "1MiB",
            "--phases", "2", "--pause", "0", "--record", str(out / "record.json"),
        ],
    ),
    Writer(
        "site add",
        "store",
        lambda _, out: ["site", "add", str(OTHER), "--store", str(out / "store")],
        force=False,
    ),
    Writer(
        "site report",
        "pages",
        lambda i, out: [
            "site", "report", "--store", str(i / "site"), "-o", str(out / "pages/site.html"),
            "--reports", str(out / "pages"),
        ],
    ),
    Writer(
        "watch keygen",
        "keys",
        lambda _, out: ["watch", "--keygen", str(out / "keys")],
        force=False,
    ),
    Writer("demo", "demo", lambda _, out: ["demo", "-o", str(out / "demo")], force=False),
)  # fmt: skip


def _write_runs(path: Path, scales: tuple[int, ...]) -> None:
    rows = [
        f'{number},{p.nodes},{p.cores_per_node},{p.burst_bytes},,{p.stripe_count},"{nodes}",{seconds}'
        for number, sample in enumerate(titan_samples(scales, each=10))
        for p, nodes in [(sample.pattern, format_node_list(sample.pattern.node_list or ()))]
        for seconds in sample.times
    ]
    columns = "pattern,nodes,cores_per_node,burst_bytes,stripe_bytes,stripe_count,node_list,seconds"
    path.write_text("\n".join([columns, *rows, ""]))


def prepare_inputs(folder: Path) -> Path:
    """Make what some commands read: a store of counters, more counters, and measured runs."""
    load = folder / "load"
    _write_runs(folder / "runs.csv", (1, 2, 4, 8, 16, 32, 64, 128))
    _write_runs(folder / "more-runs.csv", (256,))
    samples = "".join(f"ion0,{60 * number},{number},{number},1,1,1,1\n" for number in range(9))
    (folder / "more.csv").write_text(f"server,t,br,bw,rdc,wc,oc,cc\n{samples}")
    store = str(folder / "store")
    for arguments in (
        ["servers", "simulate", str(load), *SIMULATION],
        ["servers", "ingest", str(load / "counters"), str(load / "jobs.sacct"), "--store", store],
        ["write-time", "import", str(folder / "runs.csv"), "--system", "titan",
         "--store", str(folder / "runs.db")],
        ["write-time", "system", "init", "-o", str(folder / "machine.toml")],
        ["site", "add", str(LOG), "--store", str(folder / "site")],
    ):  # fmt: skip
        code, said = run(arguments)
        assert code == 0, said
    shutil.copy(folder / "runs.db", folder / "all-runs.db")
    more = ["write-time", "import", str(folder / "more-runs.csv"), "--system", "titan"]
    code, said = run([*more, "--store", str(folder / "all-runs.db")])
    assert code == 0, said
    return folder


def command(writer: Writer, inputs: Path, folder: Path) -> list[str]:
    """Return the whole command line."""
    return [*writer.command(inputs, folder), *(["--force"] if writer.force else [])]


def run(arguments: list[str]) -> tuple[int, str]:
    """Run a command here; return its exit code and what it says on standard error."""
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stderr


def content(place: Path) -> dict[str, bytes]:
    """Every file, with what is in it; locks and SQLite's working files are no data."""
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    return {
        str(file.relative_to(place)): file.read_bytes()
        for file in files
        if file.name != ".lock" and not file.name.endswith(("-wal", "-shm", "-journal"))
    }


def prepare_old(writer: Writer, inputs: Path, folder: Path) -> None:
    """Make what is there before: the same kind of thing, and other than what will be written."""
    made = inputs / "old" / writer.name
    if not made.exists():
        made.mkdir(parents=True)
        _make_old(writer, inputs, made)
    shutil.copytree(made, folder, dirs_exist_ok=True)


def _make_old(writer: Writer, inputs: Path, folder: Path) -> None:
    place = folder / writer.target
    if writer.name == "servers ingest":
        shutil.copytree(inputs / "store", place)
    elif writer.name == "site add":
        shutil.copytree(inputs / "site", place)
    elif writer.name == "site report":
        place.mkdir()
        for name in ("site.html", "job-01.html"):
            (place / name).write_text("precious")
    elif writer.name == "watch keygen":
        place.mkdir()
        (place / "notes").write_text("kept")
    elif writer.name.startswith("write-time sample") and writer.target == "runs.db":
        machine = ["--system", str(inputs / "machine.toml")]
        plan = ["write-time", "sample", "plan", "--store", str(place), *PLAN, *machine]
        code, said = run(plan)
        assert code == 0, said
    elif writer.name == "write-time import":
        shutil.copy(inputs / "runs.db", place)
    elif writer.name == "demo":
        place.mkdir()
        shutil.copy(LOG, place / "checkpointing-job.darshan")
        (place / "report.html").write_text("precious")
    elif writer.name == "stages":
        place.mkdir()
        (place / "other").write_text("kept")
    elif writer.name in ("convert store", "servers simulate"):
        code, said = run(command(writer, inputs, folder))
        assert code == 0, said
        (place / "mine.txt").write_text("a note")
    else:
        place.write_bytes(b"precious")
