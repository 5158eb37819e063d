"""Damaged logs give an answer with a warning or one clear error, quickly and in little memory."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.synthetic import Burst, Requests, Workload, synthesise
from benchmarks.synthetic.darshan_writer import write_trace
from ioprism import IoprismError, characterise, read
from ioprism.formats.darshan.log import read_log
from tests.conftest import ROOT, SHARED_DATA, TEST_DATA
from tests.formats.darshan.repacking import repack

DATA = TEST_DATA / "darshan"
LOGS = sorted(DATA.glob("*.darshan"))
LONGEST = 10.0  # seconds
LARGEST = 500 * 2**20  # bytes


def read_everything(path: Path) -> tuple[str, ...]:
    """Read all a log has, and return the warnings; only our own errors may come out."""
    trace = read(path)
    characterise(trace)
    for name in trace.counters:
        _ = trace.counters[name]
    if trace.partitions:
        trace.events()
    return trace.completeness.warnings


READ_ALL = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ioprism import IoprismError
from tests.formats.darshan.test_broken import read_everything
for path in sys.argv[2:]:
    began = time.process_time()
    try:
        said = "; ".join(read_everything(Path(path)))
    except IoprismError as error:
        said = str(error)
    # Not getrusage: its peak begins with that of the process that started this one.
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
    print(f"{time.process_time() - began}\\t{peak}\\t{said!r}")
"""


@pytest.mark.corpus
def test_every_damaged_log_is_handled_within_bounds() -> None:
    """In a process of their own, so that its peak of memory is theirs."""
    logs = sorted((SHARED_DATA / "broken").glob("*.darshan"))
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(ROOT), *map(str, logs)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    answers = [line.split("\t") for line in done.stdout.splitlines()]

    assert (done.returncode, done.stderr) == (0, "")
    assert len(answers) == len(logs) == 200
    assert max(float(seconds) for seconds, _, _ in answers) < LONGEST
    assert max(int(peak) for _, peak, _ in answers) < LARGEST
    cut = [said for log, (_, _, said) in zip(logs, answers, strict=True) if "_trunc" in log.name]
    assert all("cut" in said for said in cut)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_a_log_that_is_cut_short_says_so(tmp_path: Path, log: Path, keep: float) -> None:
    whole = log.read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[: int(len(whole) * keep)])

    try:
        warnings = read_everything(cut)
    except IoprismError:
        return
    assert any("cut short" in warning for warning in warnings)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(log=st.sampled_from(LOGS), seed=st.integers(0, 2**32), flips=st.integers(1, 40))
def test_flipped_bits_never_crash_the_reader(
    tmp_path: Path, log: Path, seed: int, flips: int
) -> None:
    chance = random.Random(seed)
    data = bytearray(log.read_bytes())
    for _ in range(flips):
        # The header is small and decides everything, so it gets half of the damage.
        end = 1328 if chance.random() < 0.5 else len(data)
        data[chance.randrange(end)] ^= 1 << chance.randrange(8)
    path = tmp_path / "flipped"
    path.write_bytes(data)

    try_everything(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(log=st.sampled_from(LOGS), seed=st.integers(0, 2**32), edits=st.integers(1, 12))
def test_changed_records_never_crash_the_reader(
    tmp_path: Path, log: Path, seed: int, edits: int
) -> None:
    """The damage lies inside the compressed data, where no checksum shows it."""
    chance = random.Random(seed)

    def damage(data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(edits if changed else 0):
            position = chance.randrange(len(changed))
            word = chance.choice([0, 1, 255, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
            changed[position : position + 8] = struct.pack("<Q", word)[: len(changed) - position]
        return bytes(
            changed[: chance.randrange(len(changed) + 1)] if chance.random() < 0.2 else changed
        )

    path = tmp_path / "changed"
    repack(log, path, damage)
    try_everything(path)


def try_everything(path: Path) -> None:
    before = time.process_time()
    try:
        read_everything(path)
    except IoprismError as error:
        assert "\nHint: " in str(error)
    assert time.process_time() - before < LONGEST


@pytest.mark.parametrize("size", [0, 5, 15, 16, 100, 359, 1327])
def test_a_header_that_is_cut_off_is_one_clear_error(tmp_path: Path, size: int) -> None:
    path = tmp_path / "short"
    path.write_bytes(LOGS[0].read_bytes()[:size])

    with pytest.raises(IoprismError, match=r"Hint: "):
        read_log(path)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 64, 66, 67, 71, 100, 1000])
def test_streams_may_be_cut_anywhere(
    window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "job.darshan"
    burst = Burst("/scratch/{rank}", "write", Requests(2, 4096))
    write_trace(log, synthesise(Workload(16, (burst,))).trace)
    monkeypatch.setattr("ioprism.formats.darshan.log.WINDOW", window)
    trace = read(log)

    assert trace.counters["POSIX"].height == 16
    assert trace.completeness.whole
