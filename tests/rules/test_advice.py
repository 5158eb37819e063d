"""Advice fits the job, carries its values, and every snippet compiles or parses."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ioprism.model.usage import FileFacts, Striping
from ioprism.rules.circumstances import circumstances, log_values
from ioprism.rules.registry import RULES, judge
from ioprism.rules.wording import SNIPPETS, texts
from tests.rules.jobs import MIB, Entry, moves, usage
from tests.rules.jobs import evidence as job

HEADERS = Path(__file__).parent / "headers"
VALUES = log_values(job(usage("posix", Entry(write=moves(4)))), [], "write")
C_SNIPPETS = sorted(SNIPPETS.glob("*.c"))
# What a program has around a snippet, by what its name begins with.
AROUND = {
    "hdf5": ("hdf5.h", "hid_t dataset, memory_space, file_space; double *buffer; MPI_Info info;"),
    "pnetcdf": ("pnetcdf.h", "enum { variables = 3 }; int file, variable[3], request[3], status[3];"
                " MPI_Offset start[2], count[2]; double *buffer[3];"),
    "stdio": ("stdio.h", ""),
}  # fmt: skip
MPI = ("mpi.h", "MPI_File file; MPI_Offset offset = 0; int count = 1, rank = 0, size = 1;"
       " char *path; double *buffer, *checkpoint, *next_block, *this_block;"
       " void read_whole(); void compute();")  # fmt: skip


def filled(snippet: Path) -> str:
    text = snippet.read_text()
    for name, value in VALUES.items():
        text = text.replace("{" + name + "}", value)
    return text


def program(snippet: Path) -> str:
    header, declared = AROUND.get(snippet.name.split("-")[0], MPI)
    if snippet.name == "pnetcdf-collective.c":
        declared = declared.replace("variable[3]", "variable").replace("*buffer[3]", "*buffer")
    main = f"void snippet(void) {{\n{declared}\n{filled(snippet)}\n}}\n"
    return f"#include <stddef.h>\n#include <{header}>\n{main}"


@pytest.mark.parametrize("snippet", C_SNIPPETS, ids=lambda path: path.name)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
def test_every_snippet_of_c_compiles(snippet: Path, tmp_path: Path) -> None:
    source = tmp_path / "snippet.c"
    source.write_text(program(snippet))
    compiler = shutil.which("mpicc")
    own = "mpi.h" in program(snippet) and compiler is not None
    command = (
        [
            compiler or "",
        ]
        if own
        else ["gcc", "-I", str(HEADERS)]
    )
    done = subprocess.run(
        [*command, "-std=gnu11", "-fsyntax-only", "-Werror=implicit-function-declaration",
         "-Werror=incompatible-pointer-types", str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("snippet", sorted(SNIPPETS.glob("*.sh")), ids=lambda path: path.name)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no shell")
def test_every_snippet_of_a_shell_parses(snippet: Path) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=filled(snippet), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("snippet", sorted(SNIPPETS.glob("*.py")), ids=lambda path: path.name)
def test_every_snippet_of_python_parses(snippet: Path) -> None:
    compile(filled(snippet), snippet.name, "exec")


def test_every_snippet_is_of_some_advice_and_none_is_missing() -> None:
    named = {
        entry["snippet"].replace("{direction}", direction)
        for rule in RULES
        for entry in texts(rule.advice).get("recommendation", ())
        if "snippet" in entry
        for direction in ([rule.direction] if rule.direction else ["read", "write"])
    }

    assert named == {path.name for path in SNIPPETS.iterdir()}


def test_no_placeholder_is_left_in_advice() -> None:
    writes = moves(100_000, 4096, small=100_000, independent=100_000)
    entries = [Entry(file=0, rank=rank, write=writes) for rank in range(4)]
    evidence = job(usage("posix", *entries), usage("mpiio", *entries))

    for finding in judge(evidence).findings:
        for advice in finding.recommendations:
            assert "{" not in advice.text
            assert "{stripe" not in (advice.snippet or "")
            assert "{cb_" not in (advice.snippet or "")


def test_values_come_from_the_log() -> None:
    entries = [Entry(file=0, rank=rank, write=moves(1000, 4096, small=1000)) for rank in range(64)]
    evidence = replace(
        job(usage("mpiio", *entries), usage("posix", *entries)),
        hosts={rank: f"node{rank // 8}" for rank in range(64)},
        files=FileFacts({0: "/lus/run 1/out.dat", 1: "/lus/b"},
                        striping={0: Striping(4 * MIB, [3]), 1: Striping(MIB, [0, 1, 2])}),
    )  # fmt: skip

    values = log_values(evidence, [0], "write")

    assert values["cb_nodes"] == "8"
    assert values["stripe_size"] == "4M"
    assert values["cb_buffer_size"] == str(16 * MIB)
    assert values["stripe_count"] == "4"
    assert values["directory"] == "'/lus/run 1'"
    assert values["mean_request"] == "4.00 KiB"


def test_a_file_of_pnetcdf_is_not_hdf5() -> None:
    entries = [Entry(file=0, rank=rank, write=moves(10)) for rank in range(4)]
    paths = FileFacts({0: "/scratch/out.nc4", 1: "/scratch/other.nc"})
    through = replace(job(usage("posix", *entries), usage("pnetcdf", *entries)), files=paths)
    other = replace(job(usage("posix", *entries)), files=paths)

    assert "hdf5" not in circumstances(through, [0])
    assert "hdf5" in circumstances(other, [0])
    assert "hdf5" not in circumstances(other, [1])


def test_imports_of_python_are_not_told_to_use_mpi_io() -> None:
    reads = moves(2000, 4096, small=2000, seconds=100.0)
    entries = [Entry(file=f, rank=r, read=reads) for r in range(8) for f in range(3)]
    names = ["/usr/lib/python3.11/os.py", "/env/numpy.cpython-311.pyc", "/env/libblas.so.3"]
    evidence = replace(
        job(usage("posix", *entries), ranks=8), files=FileFacts(dict(enumerate(names)))
    )

    found = [f for f in judge(evidence).findings if f.code.startswith("small-reads")]
    said = [advice for finding in found for advice in finding.recommendations]

    assert found
    assert all("MPI" not in advice.text + (advice.snippet or "") for advice in said)
    assert any("once per node" in advice.text for advice in said)


@pytest.mark.parametrize(("format_name", "told"), [("darshan", True), ("dftracer", False)])
def test_advice_on_darshan_is_for_its_users(format_name: str, told: bool) -> None:
    evidence = replace(job(usage("posix", Entry(write=moves(4)))), format=format_name)
    evidence.completeness.warn("some records are missing")

    (finding,) = [f for f in judge(evidence).findings if f.code == "incomplete-data"]

    assert any("Darshan" in advice.text for advice in finding.recommendations) == told


def test_collective_programs_get_collective_variants() -> None:
    writes = moves(1000, collective=1000, independent=0, seconds=50.0)
    entries = [Entry(file=0, rank=rank, write=writes) for rank in range(4)]

    findings = judge(job(usage("mpiio", *entries), usage("posix", *entries))).findings
    snippets = [a.snippet or "" for f in findings if f.code == "blocking-writes"
                for a in f.recommendations]  # fmt: skip

    assert any("MPI_File_iwrite_at_all" in snippet for snippet in snippets)
