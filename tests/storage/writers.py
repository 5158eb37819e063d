"""Every command that writes, over old data that must survive whatever happens."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from benchmarks.simulated_servers import SimulationSettings, simulate, write_simulation
from ioprism.cli import main
from ioprism.model.samples import format_node_list
from tests.conftest import TEST_DATA
from tests.write_time.machines import titan_samples

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"
OTHER = TEST_DATA / "darshan/e_mpiio_collective.darshan"
SIMULATION = SimulationSettings(servers=2, days=1.0)
PLAN = "--scales 1 --max-burst 1MB"


@dataclass(frozen=True, slots=True)
class Writer:
    """A command that writes to a target, in a folder of its own."""

    name: str
    target: str  # what is at stake, within the folder
    command: str  # of words, in which IN and OUT stand for the inputs and the folder
    force: bool = True


JOBS = "--store IN/store --jobs IN/load/jobs.sacct --min-runtime 0"

WRITERS = (
    Writer("report", "page.html", "report LOG -o OUT/page.html"),
    Writer("period", "page.html", "period LOG -o OUT/page.html"),
    Writer("compare", "page.html", "compare LOG OTHER -o OUT/page.html"),
    Writer("convert csv", "t.csv", "convert LOG OUT/t.csv"),
    Writer("convert chrome", "t.json.gz", "convert LOG OUT/t.json.gz"),
    Writer("convert store", "t.store", "convert LOG OUT/t.store"),
    Writer("bottlenecks export", "b.csv", "bottlenecks LOG --export OUT/b.csv"),
    Writer("stages", "stages", "bottlenecks LOG --stages OUT/stages", force=False),
    Writer("servers ingest", "store", "servers ingest IN/more.csv --store OUT/store", force=False),
    Writer("servers jobs export", "jobs.parquet", f"servers jobs {JOBS} --export OUT/jobs.parquet"),
    Writer("servers report", "fleet.html", f"servers report {JOBS} -o OUT/fleet.html"),
    Writer("write-time train", "model.json",
           "write-time train --store IN/runs.db -o OUT/model.json --model lasso"),
    Writer("write-time import", "runs.db",
           "write-time import IN/more-runs.csv --system titan --store OUT/runs.db", force=False),
    Writer("write-time system init", "machine.toml",
           "write-time system init --directory OUT -o OUT/machine.toml"),
    Writer("write-time evaluate", "errors.html",
           "write-time evaluate --store IN/all-runs.db --model titan -o OUT/errors.html"),
    Writer("write-time sample plan", "runs.db",
           f"write-time sample plan --store OUT/runs.db {PLAN} --seed 2", force=False),
    Writer("write-time sample run", "runs.db",
           "write-time sample run --store OUT/runs.db --directory OUT --launcher builtin "
           "--max-runs 1 --pause 0", force=False),
    Writer("write-time sample script", "job.sh",
           "write-time sample script --store IN/runs.db --directory OUT --scheduler slurm "
           "--nodes 2 -o OUT/job.sh"),
    Writer("servers validate", "record.json",
           "servers validate --run OUT/data --bytes 1MiB --phases 2 --pause 0 "
           "--record OUT/record.json"),
    Writer("site add", "store", "site add OTHER --store OUT/store", force=False),
    Writer("site report", "pages",
           "site report --store IN/site -o OUT/pages/site.html --reports OUT/pages"),
    Writer("watch keygen", "keys", "watch --keygen OUT/keys", force=False),
    Writer("demo", "demo", "demo -o OUT/demo", force=False),
)  # fmt: skip


def words(text: str, inputs: Path, folder: Path) -> list[str]:
    """The arguments of a command, with the places that its words stand for."""
    places = {"IN": inputs, "OUT": folder, "LOG": LOG, "OTHER": OTHER}
    split = (word.partition("/") for word in text.split())
    return [f"{places.get(first, first)}{slash}{rest}" for first, slash, rest in split]


def _run_well(text: str, inputs: Path, folder: Path) -> None:
    code, said = run(words(text, inputs, folder))
    assert code == 0, said


def write_runs(path: Path, scales: tuple[int, ...]) -> None:
    """Write measured runs of these numbers of nodes as CSV."""
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
    write_runs(folder / "runs.csv", (1, 2, 4, 8, 16, 32, 64, 128))
    write_runs(folder / "more-runs.csv", (256,))
    samples = "".join(f"ion0,{60 * number},{number},{number},1,1,1,1\n" for number in range(9))
    (folder / "more.csv").write_text(f"server,t,br,bw,rdc,wc,oc,cc\n{samples}")
    write_simulation(simulate(SIMULATION), folder / "load")
    for text in (
        "servers ingest IN/load/counters IN/load/jobs.sacct --store IN/store",
        "write-time import IN/runs.csv --system titan --store IN/runs.db",
        "write-time system init -o IN/machine.toml",
        "site add LOG --store IN/site",
    ):
        _run_well(text, folder, folder)
    shutil.copy(folder / "runs.db", folder / "all-runs.db")
    more = "write-time import IN/more-runs.csv --system titan --store IN/all-runs.db"
    _run_well(more, folder, folder)
    return folder


def command(writer: Writer, inputs: Path, folder: Path) -> list[str]:
    """Return the whole command line."""
    return words(writer.command + " --force" * writer.force, inputs, folder)


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
        plan = f"write-time sample plan --store OUT/runs.db {PLAN} --system IN/machine.toml"
        _run_well(plan, inputs, folder)
    elif writer.name == "write-time import":
        shutil.copy(inputs / "runs.db", place)
    elif writer.name == "demo":
        place.mkdir()
        shutil.copy(LOG, place / "checkpointing-job.darshan")
        (place / "report.html").write_text("precious")
    elif writer.name == "stages":
        place.mkdir()
        (place / "other").write_text("kept")
    elif writer.name == "convert store":
        _run_well(f"{writer.command} --force", inputs, folder)
        (place / "mine.txt").write_text("a note")
    else:
        place.write_bytes(b"precious")
