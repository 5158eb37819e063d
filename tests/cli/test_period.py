"""``ioprism period`` finds known periods and answers bad questions with one message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ioprism.cli import main
from tests.conftest import TEST_DATA

LOG = TEST_DATA / "darshan/a_ckpt_fpp_period5s.darshan"


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["period", *(str(arg) for arg in args)])


def answer(*args: object) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.stderr
    said: dict[str, Any] = json.loads(result.stdout)
    return said


@pytest.fixture
def bursts(tmp_path: Path) -> Path:
    """Ten phases of 2 s every 10 s."""
    times = [t for i in range(10) for t in (10.0 * i, 10.0 * i + 2)]
    path = tmp_path / "bursts.json"
    path.write_text(json.dumps({"b": [1e9, 0.0] * 10, "t": times}))
    return path


def test_the_promised_keys(bursts: Path) -> None:
    said = answer(bursts)

    assert said["signal"].keys() >= {"samples", "frequency", "start", "end", "direction"}
    assert said["period"].keys() >= {
        "seconds", "frequency", "confidence", "false_alarm_probability", "valid_ranges",
        "amplitude", "phase",
    }  # fmt: skip
    assert said["period"]["seconds"] == pytest.approx(10.0, rel=0.005)
    assert said["next_phase"]["start"] == pytest.approx(100.0, abs=0.5)
    assert said["components"] == [] and said["fit"] is None


def test_the_checkpoints_of_a_real_log() -> None:
    assert answer(LOG)["period"]["seconds"] == pytest.approx(5.0, rel=0.01)


def test_components_and_fit(bursts: Path) -> None:
    said = answer(bursts, "--components", 5, "--fit")

    assert len(said["components"]) == 6  # the mean and five waves
    assert said["fit"]["mse_after"] <= said["fit"]["mse_before"]


@pytest.mark.parametrize(
    "method", ["dft", "autocorrelation", "harmonic", "phases", "stft", "wavelet"]
)
def test_every_method_finds_a_plain_periodicity(bursts: Path, method: str) -> None:
    assert answer(bursts, "--method", method)["period"]["seconds"] == pytest.approx(10.0, rel=0.05)


def test_hybrid_is_a_method_too(bursts: Path) -> None:
    assert answer(bursts, "--hybrid", "--level", 3)["period"]["method"] == "hybrid"


def test_a_filter_and_a_range_of_time(bursts: Path) -> None:
    said = answer(bursts, "--filter", "lowpass:0.3", "--start", 20, "--end", 80)

    assert said["signal"]["start"] == 20
    assert said["period"]["seconds"] == pytest.approx(10.0, rel=0.03)


def test_the_periodicity_by_rank() -> None:
    said = answer(LOG, "--by", "rank")

    assert said["by"] == "rank"
    assert {part["name"] for part in said["parts"]} == {"0", "1", "2", "3"}
    assert sum(part["bytes"] for part in said["parts"]) == pytest.approx(1_610_612_736)


def test_a_job_that_only_writes_has_the_periodicity_of_its_writes(tmp_path: Path) -> None:
    starts = [10.0 * i for i in range(10)]
    arrays = {"b_rank_avr": [1e9] * 10, "t_rank_s": starts, "t_rank_e": [t + 2 for t in starts]}
    path = tmp_path / "writes.json"
    path.write_text(json.dumps({"write_sync": {"bandwidth": arrays}}))
    (write,) = answer(path)["rhythms"]

    assert write["direction"] == answer(path)["signal"]["direction"] == "write"
    assert write["seconds"] == pytest.approx(10.0, rel=0.005)
    assert answer(path, "--direction", "write")["period"]["seconds"] == write["seconds"]


def test_a_page_is_written_and_not_overwritten(bursts: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(bursts, "-o", page).exit_code == 0
    before = page.read_bytes()
    again = run(bursts, "-o", page)

    assert again.exit_code == 1
    assert "already exists" in again.stderr
    assert page.read_bytes() == before


def test_what_a_person_reads(bursts: Path) -> None:
    result = run(bursts)

    assert "The I/O repeats every 10.0 s" in result.output
    assert "█" in result.output


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--frequency", "fast"], 2, "neither auto nor a number"),
        (["--frequency", "-1"], 2, "'-1' is not a positive number"),
        (["--frequency", "nan"], 2, "'nan' is not a positive number"),
        (["--frequency", "0"], 2, "Hint: leave the option out to have it chosen."),
        (["--frequency", "1e12"], 2, "more than"),
        (["--start", "500"], 2, "nothing between"),
        (["--filter", "sharp:1"], 2, "unknown filter"),
        (["--filter", "lowpass:0"], 2, "Hint: frequencies are above 0"),
        (["--components", "1000", "--fit"], 2, "Hint: use --components"),
        (["--metric", "cpu"], 2, "0 series are called 'cpu'"),
        (["--by", "rank"], 1, "Hint: trace with DXT enabled"),
        (["--direction", "read"], 1, "Hint: trace with DXT enabled"),
    ],
)
def test_bad_questions_are_one_message(
    bursts: Path, args: list[str], code: int, message: str
) -> None:
    directed = bursts.with_name("directed.json")
    plain = json.loads(bursts.read_text())
    body = {"b_overlap_avr": plain["b"], "t_overlap": plain["t"]}
    directed.write_text(json.dumps({"write_sync": {"bandwidth": body}}))
    result = run(directed, *args)

    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "direction", "truth", "within"),
    [
        ("tmio/384.msgpack", "write", 10.143, 0.02),
        ("tmio/384.msgpack", "read", 10.175, 0.02),
        ("tmio/8.jsonl", "write", 1.937, 0.01),
        ("tmio/8.jsonl", "read", 1.891, 0.01),
        ("tmio/custom.json", "write", 2.669, 0.01),
        ("tmio/gekkofs", "write", 50.06, 0.02),
        ("darshan/made/a_ckpt_fpp_period5s.darshan", "write", 5.0, 0.01),
    ],
)
def test_real_traces(
    shared_data: Path, name: str, direction: str, truth: float, within: float
) -> None:
    found = answer(shared_data / name, "--direction", direction)["period"]

    assert found is not None
    assert found["seconds"] == pytest.approx(truth, rel=within)


def test_the_golden_answer(bursts: Path, golden: Callable[[str, str], None]) -> None:
    result = run(bursts)
    text = "\n".join(line.rstrip() for line in result.stdout.splitlines())

    golden("period-bursts.txt", text + "\n")
