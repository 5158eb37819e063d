"""The JSON of `ioprism characterise`."""

from __future__ import annotations

from typing import Any

from ioprism.analyses.characterise import Amount, Characteristics


def body(found: Characteristics) -> dict[str, Any]:
    """Return the keys of CLI.md for this command."""
    job = found.job
    return {
        "job": {
            "ranks": job.ranks,
            "processes": found.processes,
            "hosts": found.hosts,
            "runtime": job.runtime,
            "executable": job.executable,
            "start_time": job.start_time,
            "end_time": job.end_time,
            "job_id": job.job_id,
            "metadata": dict(job.metadata),
        },
        "totals": {
            "io_time": found.io_time,
            "operations": found.total.operations,
            "bytes_read": found.by_operation["read"].bytes,
            "bytes_written": found.by_operation["write"].bytes,
            "files": found.files,
        },
        "by_operation": {name: _amount(a) for name, a in found.by_operation.items()},
        "by_layer": {
            layer: {
                "operations": sum(a.operations for a in amounts.values()),
                "bytes": sum(a.bytes for a in amounts.values()),
                "time": sum(a.time for a in amounts.values()),
                **{name: _amount(a) for name, a in amounts.items()},
            }
            for layer, amounts in found.by_layer.items()
        },
        "request_sizes": {
            direction: [
                {"low": size.bin.low, "high": size.bin.high, "count": size.count} for size in sizes
            ]
            for direction, sizes in found.request_sizes.items()
        },
    }


def _amount(amount: Amount) -> dict[str, float]:
    return {"operations": amount.operations, "bytes": amount.bytes, "time": amount.time}
