"""`ioprism record` as users run it: with a stand-in for strace, and with the real tracers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ioprism.recording.choice import FIND
from ioprism.recording.tracer import find_strace, ptrace_works

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Writes what strace would write of a program that writes 3,000 bytes, and runs the program.
STAND_IN = r"""#!/bin/sh
case "$*" in
    --version) echo "strace -- version 6.1"; exit ;;
    *"-o /dev/stdout true") echo "1 +++ exited with 0 +++"; exit ;;
esac
while [ "$1" != -- ]; do
    [ "$1" = -o ] && file=$2
    shift
done
shift
cat > "$file" <<'END'
7 1700000000.000100 execve("/bin/program", ["program"], 0x7ffd /* 3 vars */) = 0 <0.000200>
7 1700000000.001000 openat(AT_FDCWD</work>, "/out", O_WRONLY|O_CREAT, 0666) = 3</out> <0.000020>
7 1700000000.002000 write(3</out>, "x"..., 1000) = 1000 <0.000100>
7 1700000000.003000 write(3</out>, "x"..., 2000) = 2000 <0.000100>
7 1700000000.004000 close(3</out>) = 0 <0.000010>
END
exec "$@"
"""
# What srun, jsrun and flux do with variables, and how they start tasks and end.
LAUNCHER = r"""#!/bin/bash
tasks=1 all=yes pairs=()
[ "${0##*/}" = flux ] && shift
while [[ "$1" = -* ]]; do
    case "$1" in
        -n) tasks=$2; shift ;;
        -E) pairs+=("$2"); shift ;;
        --env=*) pairs+=("${1#--env=}") ;;
        --export=*)
            all=no
            IFS=, read -ra names <<< "${1#--export=}"
            for name in "${names[@]}"; do
                [ "$name" = ALL ] && all=yes
                [[ "$name" = *=* ]] && pairs+=("$name")
            done ;;
    esac
    shift
done
[ "$all" = yes ] || pairs=(-i "PATH=$PATH" "${pairs[@]}")
for ((task = 0; task < tasks; task++)); do env "${pairs[@]}" TASK=$task "$@" & done
code=0
for job in $(jobs -p); do wait "$job" || code=$?; done
exit $code
"""
LAUNCHERS = [("srun", "-n", "2"), ("srun", "--export=NONE", "-n", "2"), ("jsrun", "-n", "2"),
             ("flux", "run", "-n", "2")]  # fmt: skip
LFS = r"""#!/bin/sh
case "$1 $2 $3" in
    "setstripe -c "*) echo "$3" > "$4.striping" ;;
    "getstripe -d -c") cat "$4.striping" ;;
    "getstripe -c "*) cat "$3" ;;
esac
"""
# A new file gets the striping of its folder; the program is faster with more targets.
STRIPED = """
[ -e out/data ] || cat out.striping > out/data
[ "$(cat out/data)" = -1 ] || sleep 0.6
"""
WRITES = """
import os, signal, sys
written = 0
with open(sys.argv[1], "wb", buffering=0) as file:
    for _ in range(300):
        written += file.write(b"x" * 700)
sys.stdout.write(f"{written}\\n")
sys.stdout.flush()
if len(sys.argv) > 2:
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.fixture
def record(tmp_path: Path) -> Run:
    """Run `ioprism record` in an empty folder where only the stand-in can trace."""
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / "strace", STAND_IN)
    return runner(tmp_path, f"{tools}:/usr/bin:/bin")


def runner(folder: Path, path: str) -> Run:
    place = folder / "here"
    place.mkdir()

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path}
        command = [sys.executable, "-m", "ioprism", "record", *map(str, words)]
        return subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    return run


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def real(name: str) -> str:
    if name == "strace":
        strace = find_strace()
        if strace is None or not ptrace_works(strace.where):
            pytest.skip("strace is not installed, or may not trace here")
    elif not FIND[name]():
        pytest.skip(f"{name} is not installed")
    return name


def test_output_and_exit_code_are_those_of_the_program(record: Run, tmp_path: Path) -> None:
    done = record("--tracer", "strace", "-o", "out", "--", "sh", "-c", "echo said; exit 7")

    assert done.stdout == "said\n"
    assert done.returncode == 7
    assert "Recording sh with strace 6.1" in done.stderr
    assert "exit code 7" in done.stderr
    assert "overhead" in done.stderr
    assert "2.93 KiB" in done.stderr  # as the stand-in wrote
    assert names(tmp_path / "here") == ["out"]
    assert names(tmp_path / "here/out") == ["record.json", "report.html", "run-1"]


def test_a_killed_program_is_reported_and_ends_us_by_the_same_signal(
    record: Run, tmp_path: Path
) -> None:
    done = record("--tracer", "strace", "-o", "out", "--", "sh", "-c", "kill -TERM $$")

    assert done.returncode == -signal.SIGTERM
    assert "ended by SIGTERM" in done.stderr
    assert (tmp_path / "here/out/report.html").exists()


@pytest.mark.usefixtures("record")
def test_a_signal_to_us_reaches_the_program(tmp_path: Path) -> None:
    waits = "trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "ioprism", "record", "-o", str(tmp_path / "out"), "--tracer",
               "strace", "--", "sh", "-c", waits]  # fmt: skip
    environment = {**os.environ, "PATH": f"{tmp_path / 'tools'}:/usr/bin:/bin"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(signal.SIGUSR1)
        output, _ = run.communicate(timeout=60)

    assert output == "got it\n"
    assert run.returncode == 5


def test_json_is_alone_on_standard_output(record: Run) -> None:
    done = record("--tracer", "strace", "--json", "-q", "--", "echo", "said")
    document = json.loads(done.stdout)

    assert "said\n" in done.stderr
    assert document["recording"]["command"] == ["echo", "said"]
    assert document["recording"]["runs"][0]["exit_code"] == 0
    assert document["recording"]["overhead"]["calls"] == 5
    assert document["report"]["totals"]["bytes_written"] == 3000


def test_words_behind_the_dashes_belong_to_the_program(record: Run) -> None:
    done = record("--tracer", "strace", "--", "printf", "<%s>", "", "--debug", "--check")

    assert done.stdout == "<><--debug><--check>"


def test_traces_are_deleted_on_request(record: Run, tmp_path: Path) -> None:
    record("--tracer", "strace", "-o", "out", "--keep", "no", "--", "true")

    assert names(tmp_path / "here/out") == ["record.json", "report.html"]


def test_a_recording_is_replaced_only_with_force_and_nothing_else_ever(
    record: Run, tmp_path: Path
) -> None:
    words = ("--tracer", "strace", "-o", "out", "--", "true")
    foreign = tmp_path / "here/mine"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("")
    record(*words)

    assert "use --force" in record(*words).stderr
    assert record("--force", *words).returncode == 0
    refused = record("--force", "--tracer", "strace", "-o", "mine", "--", "true")
    assert (refused.returncode, names(foreign)) == (1, ["thesis.tex"])
    assert "not a recording" in refused.stderr


def test_repeated_runs_are_compared_with_an_earlier_recording(record: Run, tmp_path: Path) -> None:
    words = ("--tracer", "strace", "--against", "base", "--fail-on", "20%", "--repeat", 5)
    record("--tracer", "strace", "--repeat", 4, "-o", "base", "--", "sh", "-c", "true")
    marker = tmp_path / "here/base/record.json"
    content = json.loads(marker.read_text())

    def took(*seconds: float) -> None:  # times that do not depend on how busy this machine is
        for run, time in zip(content["runs"], seconds, strict=True):
            run["seconds"] = time
        marker.write_text(json.dumps(content))

    took(99.0, 100.0, 101.0, 100.0)
    faster = record(*words, "--", "sh", "-c", "true")
    took(0.001, 0.002, 0.001, 0.002)
    slower = record(*words, "--", "sh", "-c", "true")  # five are enough to compare ranks

    assert re.search(r"Faster by \d+%: 1 min 40 s before", faster.stderr)
    assert "4 runs before and 5 after" in faster.stderr
    assert faster.returncode == 0
    assert "Slower by" in slower.stderr
    assert slower.returncode == 3


def test_repetitions_stop_at_the_first_run_that_fails(record: Run, tmp_path: Path) -> None:
    done = record("--tracer", "strace", "-o", "out", "--repeat", 5, "--", "false")

    assert done.returncode == 1
    assert [path.name for path in (tmp_path / "here/out").glob("run-*")] == ["run-1"]


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ((), "no command was given", 2),
        (("--", "./missing"), "no such program", 2),
        (("--fail-on", "5%", "--", "true"), "--fail-on needs --against", 2),
        (("--fail-on", "much", "--", "true"), "is not a share", 2),
        (("--tracer", "darshan", "--", "true"), "Hint: to get it", 2),
        (("--", "podman", "run", "x"), "in a container", 2),
    ],
)
def test_what_cannot_be_done_is_one_message(
    record: Run, tmp_path: Path, words: tuple[str, ...], message: str, code: int
) -> None:
    done = record(*words)

    assert message in done.stderr
    assert done.returncode == code
    assert names(tmp_path / "here") == []


def test_the_doctor_lists_what_is_there_and_how_to_get_the_rest(record: Run) -> None:
    said = json.loads(record("--check", "--json").stdout)["checks"]
    found = {check["what"]: check for check in said}

    assert found["strace"]["status"] == found["ptrace"]["status"] == "ok"
    assert found["darshan"]["status"] == "ok" or "module load darshan" in found["darshan"]["hint"]
    assert {"dftracer", "C library", "kernel", "output"} <= set(found)
    assert "strace 6.1" in record("--check").stdout


def test_a_job_script_records_the_same_command(record: Run, tmp_path: Path) -> None:
    done = record("--tracer", "strace", "--script", "slurm", "--", "sh", "-c", "echo 'a b'")

    assert "#SBATCH --nodes=1" in done.stdout
    assert done.stdout.endswith("--tracer strace -- \\\n    sh -c 'echo '\"'\"'a b'\"'\"''\n")
    assert names(tmp_path / "here") == []


def test_a_program_without_io_is_no_failure(tmp_path: Path) -> None:
    real("dftracer")
    done = runner(tmp_path, os.environ["PATH"])("--tracer", "dftracer", "--json", "--", "true")

    assert done.returncode == 0
    assert json.loads(done.stdout)["report"] is None
    assert "No I/O was recorded" in done.stderr


@pytest.mark.parametrize("tracer", ["strace", "dftracer", "darshan"])
@pytest.mark.parametrize("number", [0, signal.SIGTERM])
def test_real_tracers_count_the_bytes_that_the_program_counts(
    tmp_path: Path, tracer: str, number: int
) -> None:
    if tracer == "darshan" and number:
        pytest.skip("Darshan writes its log when the program ends")
    program = tmp_path / "writes.py"
    program.write_text(WRITES)
    run = runner(tmp_path, os.environ["PATH"])
    words = [sys.executable, program, tmp_path / "data.bin", *([int(number)] if number else [])]
    done = run("--tracer", real(tracer), "--json", "--", *words)
    document = json.loads(done.stdout)

    assert done.returncode == -number
    assert "210000\n" in done.stderr
    written = document["report"]["totals"]["bytes_written"]
    lost = 700 * 30 if tracer == "dftracer" and number else 0  # what it says it loses
    assert 210_000 - lost <= written <= 210_000 + 100  # and what the program prints
    assert document["recording"]["cost"]["per_call"] >= 0


def test_background_processes_do_not_hold_the_recording_up(tmp_path: Path) -> None:
    real("strace")
    run = runner(tmp_path, os.environ["PATH"])
    started = "sleep 6 > /dev/null 2>&1 & exit 4"
    done = run("--tracer", "strace", "--", "sh", "-c", started)

    assert done.returncode == 4
    assert "1 process that the program started" in done.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=" ".join)
def test_each_task_of_a_launcher_is_recorded(
    record: Run, tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    script(tmp_path / "tools" / launcher[0], LAUNCHER)
    done = record("--tracer", "strace", "--json", "-o", "out", "--", *launcher, "sh", "-c",
                  "echo task $TASK; exit 3")  # fmt: skip
    document = json.loads(done.stdout)

    assert done.returncode == 3
    assert {"task 0", "task 1"} <= set(done.stderr.splitlines())
    assert document["report"]["totals"]["bytes_written"] == 2 * 3000


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=" ".join)
def test_variables_of_a_tracer_reach_each_task(tmp_path: Path, launcher: tuple[str, ...]) -> None:
    real("dftracer")
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / launcher[0], LAUNCHER)
    program = tmp_path / "writes.py"
    program.write_text(WRITES)
    run = runner(tmp_path, f"{tools}:{os.environ['PATH']}")
    done = run("--tracer", "dftracer", "--json", "--", *launcher, sys.executable, program, "data")

    assert json.loads(done.stdout)["report"]["totals"]["bytes_written"] == 2 * 210_000


def test_striping_is_tried_in_the_given_folder_and_set_back(record: Run, tmp_path: Path) -> None:
    here = tmp_path / "here"
    script(tmp_path / "tools/lfs", LFS)
    (here / "out").mkdir()
    (here / "out.striping").write_text("1\n")
    (here / "out/mine").write_text("1\n")
    done = record("--tracer", "strace", "--try", "--rounds", 4, "--stripe-dir", "out", "--json",
                  "-o", "recorded", "--", "sh", "-c", STRIPED)  # fmt: skip
    (trial,) = json.loads(done.stdout)["recording"]["trials"]

    assert trial["name"] == "stripe-over-all-targets"
    assert trial["status"] in ("gain", "undecided")  # on a busy machine
    assert max(trial["seconds"]) < 0.6
    assert (here / "out.striping").read_text() == "1\n"
    assert names(here / "out") == ["data", "mine"]
    assert done.returncode == 0


def test_striping_needs_a_folder_on_lustre(record: Run, tmp_path: Path) -> None:
    done = record("--tracer", "strace", "--try", "--stripe-dir", ".", "--", "true")

    assert "the striping of" in done.stderr
    assert done.returncode == 1
    assert names(tmp_path / "here") == []
