"""Advice fits the job, carries its values, and every snippet compiles or parses."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ioprism import Job
from ioprism.diagnosis.rules.registry import RULES, judge
from ioprism.diagnosis.rules.wording import SNIPPETS, circumstances, log_values, texts
from ioprism.diagnosis.wording import FOLDER as CAUSE_TEXTS
from ioprism.diagnosis.wording import fill
from ioprism.model.usage import FileFacts, Striping
from tests.diagnosis.rules.jobs import MIB, Entry, moves, usage
from tests.diagnosis.rules.jobs import evidence as job

HEADERS = Path(__file__).parent / "headers"
VALUES = log_values(job(usage("posix", Entry(write=moves(4)))), [], "write")
SYNTAX = ("-std=gnu11", "-fsyntax-only", "-x", "c")
STRICT = ("-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types",
          "-Werror=int-conversion")  # fmt: skip
C_SNIPPETS = sorted(SNIPPETS.glob("*.c"))
# What a program has around a snippet, by what its name begins with.
AROUND = {
    "hdf5": ("hdf5.h", "unsigned flags = 0; hid_t dataset, memory_space, file_space;"
             " double *buffer; MPI_Info info;"),
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


@cache
def library_flags(header: str, needs: str = "1") -> tuple[str, ...] | None:
    """How `mpicc` finds a real header that holds to a condition; None: there is none here."""
    if shutil.which("mpicc") is None:
        return None
    for package in ("", "hdf5-mpich", "hdf5-openmpi", "pnetcdf"):
        flags = _run(["pkg-config", "--cflags", package]).stdout.split() if package else []
        probe = f"#include <{header}>\n#if !({needs})\n#error too old\n#endif\n"
        if not _run(["mpicc", *flags, *SYNTAX, "-"], probe).returncode:
            return tuple(flags)
    return None


def _run(command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        return subprocess.CompletedProcess(command, 127, "", "")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def compiled(source: str, header: str) -> subprocess.CompletedProcess[str]:
    """Check a program against the library's own headers, or against ours where it is missing."""
    new = "H5_VERSION_GE(1, 14, 0)" if "subfiling" in source else "1"
    flags = library_flags(header, new)
    command = ["gcc", "-I", str(HEADERS)] if flags is None else ["mpicc", *flags]
    return _run([*command, *SYNTAX, *STRICT, "-"], source)


needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
needs_shell = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no shell")


@pytest.mark.parametrize("snippet", C_SNIPPETS, ids=lambda path: path.name)
@needs_compiler
def test_every_snippet_of_c_compiles(snippet: Path) -> None:
    header, _ = AROUND.get(snippet.name.split("-")[0], MPI)
    done = compiled(program(snippet), header)

    assert done.returncode == 0, done.stderr


CAUSE_CODE = [
    pytest.param(entry["code"], id=f"{file.stem}-{number}")
    for file in sorted(CAUSE_TEXTS.glob("*.toml"))
    for number, entry in enumerate(tomllib.loads(file.read_text()).get("recommendation", ()))
    if "code" in entry
]
# What a program has around the code of a cause.
DECLARED = {
    "mpi.h": "MPI_Info info; MPI_File file; MPI_Offset offset; MPI_Datatype type; int count, rank,"
    " size; char *path; void *buffer;",
    "hdf5.h": "hid_t access, transfer, create; hsize_t *dims, *chunk; int rank, dimensions;",
    "pnetcdf.h": "int file, mode, variable, old; char *path; MPI_Info info; MPI_Offset *start;"
    " MPI_Offset *count; float *values;",
    "stdio.h": "FILE *stream; int file;",
}


def header_of(code: str) -> str:
    marks = {"H5": "hdf5.h", "ncmpi_": "pnetcdf.h", "MPI_": "mpi.h"}
    return next((header for mark, header in marks.items() if mark in code), "stdio.h")


def is_python(code: str) -> bool:
    return code.startswith(("data =", "DataLoader(", "h5py.", "open(", "pool ="))


@pytest.mark.parametrize("code", CAUSE_CODE)
@needs_compiler
@needs_shell
def test_every_snippet_of_a_cause_compiles_or_parses(code: str) -> None:
    values = dict.fromkeys(("nodes", "targets", "wanted", "stripe_count", "stripe_bytes"), "4")
    text = fill(code, {**values, "stripe_short": "1M", "directory": "/scratch", "host": "node1",
                       "other_targets": "1,2"})  # fmt: skip
    if is_python(text):
        compile(text, "snippet", "exec")
    elif ");" in text:
        header = header_of(text)
        includes = f"#include <unistd.h>\n#include <{header}>\n#include <stdio.h>\n"
        declared = DECLARED[header]
        if " read(" in text:  # of a file that MPI does not know
            declared = declared.replace("MPI_File file", "int file")
        done = compiled(f"{includes}void snippet(void) {{\n{declared}\n{text}\n}}", header)
        assert done.returncode == 0, done.stderr
    else:
        done = _run(["bash", "-n"], text)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("snippet", sorted(SNIPPETS.glob("*.sh")), ids=lambda path: path.name)
@needs_shell
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


@pytest.mark.parametrize(("direction", "told"), [("read", True), ("write", False)])
def test_loading_samples_is_advised_for_reads_alone(direction: str, told: bool) -> None:
    small = Entry(**{direction: moves(5000, size=100)})  # type: ignore[arg-type]
    found = judge(replace(job(usage("posix", small)), job=Job(executable="python train.py")))

    (finding,) = [one for one in found.findings if one.code == f"small-{direction}s"]
    assert any("samples" in one.text for one in finding.recommendations) is told


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


@pytest.mark.parametrize(("there", "advised"), [(2, False), (3, True), (None, True)])
def test_wider_stripes_are_advised_only_where_there_are_more_targets(
    there: int | None, advised: bool
) -> None:
    entries = [Entry(0, rank, write=moves(1)) for rank in range(65)]
    crowd = job(usage("posix", *entries), ranks=65)
    facts = FileFacts({0: "/lus/out"}, striping={0: Striping(MIB, [1, 2])}, system_targets=there)

    (found,) = [
        f for f in judge(replace(crowd, files=facts)).findings if f.code == "target-contention"
    ]

    assert found.recommendations
    assert any("Stripe over more" in one.text for one in found.recommendations) == advised


HARMFUL = (
    "H5F_ACC_TRUNC",
    "NC_CLOBBER",
    "O_TRUNC",
    '"wb"',
    "'w'",
    "'wb'",
    "/test;",
    " samples.tar",
)


def test_no_snippet_truncates_or_removes_what_a_user_has() -> None:
    snippets = [path.read_text() for path in sorted(CAUSE_TEXTS.glob("*.toml"))]
    snippets += [path.read_text() for path in sorted(SNIPPETS.iterdir())]

    assert not [(word, text) for text in snippets for word in HARMFUL if word in text]
