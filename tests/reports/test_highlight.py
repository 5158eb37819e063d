"""The picture lights the calls that a finding is about, by the finding's own numbers."""

from __future__ import annotations

from ioprism import Finding, LocalEngine, Severity
from ioprism.model.verdict import CallGroup, Cause, Contrast, Saving, Subject
from ioprism.reports.highlight import cause_concern, concern
from ioprism.views.timeline import timeline
from tests.call_tables import calls, trace_of

MIB = 2**20


def test_misaligned_calls_are_those_off_the_alignment_that_the_finding_names() -> None:
    write = {"operation": "write", "seconds": 0.1, "bytes": 4096}
    shown = timeline(trace_of(calls([{**write, "offset": 4096}])), LocalEngine())
    findings = [
        Finding("misaligned-file", Severity.HIGH, Subject("job"), {"alignment": block})
        for block in (4096, MIB)
    ]
    pages, stripes = (concern(finding, shown, {}) for finding in findings)

    assert pages is None
    assert stripes is not None
    assert stripes["misaligned"] == MIB


def test_a_cause_of_small_reads_lights_the_small_reads_that_reach_storage() -> None:
    read = {"operation": "read", "seconds": 0.1, "bytes": 512}
    rows = [
        read,
        {**read, "bytes": 4 * MIB},
        {**read, "operation": "write"},
        {**read, "layer": "mpiio"},
    ]
    trace = trace_of(calls(rows))
    group = CallGroup(1)
    cause = Cause(
        "random-access",
        {"bytes_per_request": 512},
        Saving(1.0, 1.0, 1.0, 0.1),
        0.9,
        Contrast("size", group),
        facts={"direction": "read"},
    )

    show = cause_concern(cause, timeline(trace, LocalEngine()), trace)

    assert show == {"operations": ["read"], "below": MIB, "layers": ["posix"]}
