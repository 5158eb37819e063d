"""A compressed table says what a plain one says, in little memory, whatever it unpacks to."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ioprism import BrokenTraceError, read
from ioprism.cli import main
from ioprism.formats import text as compressed

HEAD = "start,end,operation,file,bytes,offset,rank\n"


def test_a_compressed_table_says_the_same_as_a_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 1000)
    rows = "".join(f'{n},{n + 1},read,"/a,\n{n % 7}",{n},{n},{n % 3}\n' for n in range(500))
    plain, packed = tmp_path / "t.csv", tmp_path / "p.csv.gz"
    plain.write_text(HEAD + rows)
    packed.write_bytes(gzip.compress((HEAD + rows).encode()))

    assert read(packed).events().equals(read(plain).events())
    assert read(packed).files.equals(read(plain).files)


def test_a_compressed_block_of_short_lines_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 10)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"{HEAD}0,1,read\nx\n2,3,read\n".encode()))
    trace = read(tmp_path / "t.csv.gz")

    assert trace.events()["start"].to_list() == [0.0, 2.0]
    assert trace.completeness.warnings == ("t.csv.gz: 1 call with impossible times left out",)


def test_compressed_lines_of_json_say_the_same_as_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "BLOCK", 1000)
    lines = "".join(
        json.dumps({"start": n, "end": n + 1, "operation": "write", "bytes": n}) + "\n"
        for n in range(300)
    )
    plain, packed = tmp_path / "t.jsonl", tmp_path / "p.jsonl.gz"
    plain.write_text(lines)
    packed.write_bytes(gzip.compress(lines.encode()))

    assert read(packed).events().equals(read(plain).events())


def test_a_compressed_table_that_is_cut_short_is_said(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n + 1},read,/a{n * 7919 % 1000},{n},{n},0\n" for n in range(5000))
    whole = gzip.compress((HEAD + rows).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    trace = read(tmp_path / "t.csv.gz")

    assert 0 < trace.events().height < 5000
    assert "the compressed data are cut short or damaged" in trace.completeness.warnings[0]


def test_a_line_that_unpacks_to_too_much_is_refused_with_sizes(tmp_path: Path) -> None:
    bomb = tmp_path / "t.csv.gz"
    bomb.write_bytes(gzip.compress(HEAD.encode() + bytes(30 * 2**20)))
    result = CliRunner().invoke(main, ["characterise", str(bomb)])

    assert result.exit_code == 1
    assert "compressed bytes unpacks to more than 16,777,216 bytes" in result.stderr


MEASURED = """
import re, sys
from pathlib import Path
from ioprism.api import read
trace = read(sys.argv[1])
rows = sum(batch.collect().height for batch in trace.batches())
# Of this program alone: what getrusage tells includes the process that started it.
print(rows, re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_a_table_that_unpacks_to_very_much_is_read_in_little_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "t.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(HEAD.encode())
        for _ in range(4):
            file.write(b"0,1,read,/a,100,0,0\n" * 250_000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(bomb)], capture_output=True, text=True, check=True
    )
    rows, kilobytes = map(int, done.stdout.split())

    assert rows == 1_000_000
    assert kilobytes < 600_000


@pytest.mark.parametrize("columns", [5_000, 3_000_000])
def test_short_rows_below_a_long_heading_are_not_filled_up(tmp_path: Path, columns: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"start,end,operation{',x' * columns}\n" + "1,2,read\n" * 100_000)
    if columns > compressed.MOST_COLUMNS:
        with pytest.raises(BrokenTraceError, match="more than 10,000 columns"):
            read(path)
    else:
        assert read(path).events().height == 100_000


def test_of_lines_of_json_only_the_known_keys_are_read(tmp_path: Path) -> None:
    others = ({f"k{n}_{key}": 1 for key in range(100)} for n in range(500))
    lines = [
        {"start": n, "end": n + 0.5, "operation": "write", "bytes": float(n), **more}
        for n, more in enumerate(others)
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    events = read(path).events()

    assert events["bytes"].to_list() == list(range(500))
    assert events["end"].to_list() == [n + 0.5 for n in range(500)]
