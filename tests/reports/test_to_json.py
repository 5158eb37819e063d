"""JSON documents: the same text in pieces of any size, without holding long lists as text."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from ioprism import api
from ioprism.phase_detection.find import LayerPhases, Phase, Phases, RankTime
from ioprism.reports import to_json
from ioprism.reports.to_json import LARGE, document, document_pieces, dump
from tests.conftest import TEST_DATA


@pytest.mark.parametrize("name", ["a", "é\x7f", "half a pair \ud800"])
@pytest.mark.parametrize("rows", [0, 1, LARGE // 20])
def test_documents_of_every_size_look_the_same(name: str, rows: int) -> None:
    value = {name: [{"x": 1e-7 * n, "none": [], "empty": {}, "big": 10**30} for n in range(rows)]}

    assert dump(value) == json.dumps(value, indent=2).replace("\x7f", "\\u007f")


@pytest.mark.parametrize("batch", [1, 3, 7, 8])
def test_batches_do_not_show_in_the_text(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    value = {"empty": {}, "deep": {"lists": [[n, {"n": [n]}] for n in range(7)], "none": None}}
    monkeypatch.setattr(to_json, "BATCH", batch)

    assert dump(value) == json.dumps(value, indent=2)


def test_writing_phases_takes_memory_for_one_batch_only(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = api.read(TEST_DATA / "darshan" / "a_ckpt_fpp_period5s.darshan")
    monkeypatch.setattr(to_json, "BATCH", 100)

    def peak(count: int) -> int:
        pieces = document_pieces(trace, _phases(count).to_stream())
        return _peak_memory(pieces)

    few, many = peak(500), peak(5_000)

    assert many - few < 4_500 * 40  # bytes; a phase as a dict has ten times as many


def test_streamed_phases_are_the_document_of_their_dict() -> None:
    trace = api.read(TEST_DATA / "darshan" / "a_ckpt_fpp_period5s.darshan")
    phases = _phases(3)

    streamed = "".join(document_pieces(trace, phases.to_stream()))

    assert streamed == document(trace, phases.to_dict())


def _phases(count: int) -> Phases:
    time = RankTime(1, 0.25)
    phase = Phase(1.0, 2.0, 4, 8, 4096, 0, 4096, time, time, 0.25)
    return Phases({"posix": LayerPhases(0.5, (phase,) * count)})


def _peak_memory(pieces: Iterator[str]) -> int:
    tracemalloc.start()
    for _ in pieces:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
