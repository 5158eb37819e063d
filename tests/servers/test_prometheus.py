"""`servers watch` asks real HTTP endpoints; an answer that is not whole changes no number."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

import pytest

from ioprism import servers
from ioprism.servers.raw_files import EndpointSource
from ioprism.servers.watch import LoadRound, LoadWatch, WatchPlan

MIB = 2**20
START = 1_700_000_000.0
TEXT = "text/plain; version=0.0.4; charset=utf-8"
Reply = Callable[[BaseHTTPRequestHandler], None]


class Exporter:
    """An endpoint on loopback; what it replies next is set by hand."""

    def __init__(self) -> None:
        self.ending, self.reply = Event(), whole("")
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            ending: ClassVar[Event] = self.ending

            def do_GET(self) -> None:
                exporter.reply(self)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        self.now = START
        self.watch = self.new_watch()

    def new_watch(self, store: Path | None = None) -> LoadWatch:
        source = EndpointSource(f"http://127.0.0.1:{self.server.server_port}/metrics")
        plan = WatchPlan(timeout=1.0, store=store)
        return LoadWatch([source], plan, lambda: self.now, lambda: self.now)

    def round(self, reply: Reply) -> LoadRound:
        self.reply, self.now = reply, self.now + 10.0
        return self.watch.round()

    def close(self) -> None:
        self.ending.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.close()


def scrape(jobs: dict[str, int], *, target: str = "fs-OST0000") -> str:
    """What exporters of Lustre answer: bytes written by each job, and by all."""
    labels = f'component="ost",target="{target}"'
    lines = [
        "# HELP go_goroutines Number of goroutines that currently exist.",
        "# TYPE go_goroutines gauge",
        "go_goroutines 11",
        "# HELP lustre_write_bytes_total The total number of bytes that have been written.",
        "# TYPE lustre_write_bytes_total counter",
        f"lustre_write_bytes_total{{{labels}}} {float(sum(jobs.values())):g}",
        "# TYPE lustre_job_write_bytes_total counter",
    ]
    lines += [
        f'lustre_job_write_bytes_total{{component="ost",jobid="{job}",target="{target}"}} {size}'
        for job, size in jobs.items()
    ]
    return "\n".join([*lines, "# TYPE lustre_job_stats_total counter", ""])


def send(handler: BaseHTTPRequestHandler, body: bytes, **headers: str) -> None:
    handler.send_response(200)
    for name, value in {"Content_Type": TEXT, **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
    handler.close_connection = True


def whole(text: str) -> Reply:
    return lambda handler: send(handler, text.encode(), Content_Length=str(len(text.encode())))


def shortened(text: str) -> Reply:
    return lambda handler: send(handler, text.encode(), Content_Length=str(len(text) + 99))


def cut_chunk(text: str) -> Reply:
    chunk = f"{len(text) + 99:x}\r\n{text}".encode()
    return lambda handler: send(handler, chunk, Transfer_Encoding="chunked")


def cut_without_length(text: str) -> Reply:
    return lambda handler: send(handler, text.encode())


def trickled(text: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        send(handler, b"", Content_Length=str(len(text)))
        for letter in text.encode():
            if handler.ending.wait(0.05):  # type: ignore[attr-defined]
                return
            handler.wfile.write(bytes([letter]))

    return reply


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.ending.wait(60.0)  # type: ignore[attr-defined]


def refused(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(503)


def garbage(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"\x16\x03\x01\x02\x00 this is TLS\n")
    handler.close_connection = True


LOGIN = "<!DOCTYPE html><html><body>Please log in</body></html>\n"
BEFORE_CUT = scrape({"7": 90 * MIB})
IN_A_NUMBER = BEFORE_CUT[: BEFORE_CUT.rindex("94371840") + 2]
FAULTS = {
    "shortened": shortened(IN_A_NUMBER),
    "cut between lines": shortened(BEFORE_CUT[: BEFORE_CUT.index("# TYPE lustre_job")]),
    "cut chunk": cut_chunk(IN_A_NUMBER),
    "cut without a length": cut_without_length(IN_A_NUMBER),
    "trickled": trickled(BEFORE_CUT),
    "silent": silent,
    "refused": refused,
    "not HTTP": garbage,
    "a page to log in": whole(LOGIN),
    "empty": whole(""),
    "other metrics": whole("# TYPE up gauge\nup 1\n"),
}


def test_rates_of_an_endpoint_are_stored_as_they_are_shown(
    exporter: Exporter, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    exporter.watch = exporter.new_watch(store)
    for size in range(4):
        result = exporter.round(whole(scrape({"7": size * 20 * MIB, "9": size * 5 * MIB})))

    assert [(row.name, row.write) for row in result.jobs] == [("7", 2 * MIB), ("9", MIB / 2)]
    assert [(row.name, row.write) for row in result.targets] == [("fs-OST0000", 2.5 * MIB)]
    assert result.moved["write"] == 75 * MIB
    stored = servers.jobs(store, min_runtime=0.0).table
    assert dict(stored.select("job", "write_bytes").iter_rows()) == {"7": 60 * MIB, "9": 15 * MIB}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_answer_that_is_not_whole_changes_no_rate(exporter: Exporter, fault: Reply) -> None:
    exporter.round(whole(scrape({"7": 80 * MIB})))
    begun = time.monotonic()

    broken = exporter.round(fault)
    after = exporter.round(whole(scrape({"7": 100 * MIB})))

    assert time.monotonic() - begun < 20.0  # an answer without an end is not waited for
    assert "no counters since" in broken.notes[0]
    assert not broken.jobs
    assert [(row.name, row.write) for row in after.jobs] == [("7", MIB)]  # 20 MiB in 20 s
    assert any("answers again" in note for note in after.notes)


def test_counters_of_an_exporter_that_restarted_count_from_zero(exporter: Exporter) -> None:
    exporter.round(whole(scrape({"7": 800 * MIB, "9": 50 * MIB})))

    result = exporter.round(whole(scrape({"7": 10 * MIB, "9": 60 * MIB})))

    assert [(row.name, row.write) for row in result.jobs] == [("7", MIB), ("9", MIB)]
    assert any("restarted" in note for note in result.notes)


def test_values_that_cannot_be_counters_are_left_out_and_packed_text_is_read(
    exporter: Exporter,
) -> None:
    odd = 'lustre_job_write_bytes_total{{component="ost",jobid="{}",target="fs-OST0000"}} {}\n'
    values = ("NaN", "+Inf", "-5", "1e300", "12 34 56", "")
    lines = "".join(odd.format(f"odd{n}", value) for n, value in enumerate(values))
    exporter.round(whole(scrape({"7": 0})))
    packed = gzip.compress((scrape({"7": 10 * MIB}) + lines).encode())

    result = exporter.round(
        lambda handler: send(
            handler, packed, Content_Encoding="gzip", Content_Length=str(len(packed))
        )
    )

    assert [(row.name, row.write) for row in result.jobs] == [("7", MIB)]
    assert any("6 × damaged line" in note for note in result.notes)
