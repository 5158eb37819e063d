"""Collect jobs one by one into a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ioprism.formats.budget import Budget
from ioprism.model.counters import JOBS, Tally

DAMAGED_NODES = "job with a damaged list of nodes"
NOT_OVER = "job without a start or end"
NO_TIME = "job that does not end after its start"
BYTES_OF_NAME = 80  # that a server's name takes in a list and in the table


@dataclass(slots=True)
class JobRows:
    """Jobs collected so far, as columns."""

    budget: Budget
    columns: dict[str, list[Any]] = field(default_factory=lambda: {n: [] for n in JOBS.names})

    def add(
        self,
        tally: Tally,
        *,
        job: str,
        start_us: int | None,
        end_us: int | None,
        servers: Sequence[str],
        nodes: int | None = None,
        **facts: str | None,
    ) -> None:
        """Add one job; one that cannot be placed in time is counted instead.

        Raises:
            OverBudgetError: the jobs so far name more servers than fit into the budget.
        """
        if start_us is None or end_us is None:
            tally.leave_out(NOT_OVER)
        elif end_us <= start_us:
            tally.leave_out(NO_TIME)
        else:
            self.budget.take(BYTES_OF_NAME * len(servers), "the lists of hosts")
            given = {**facts, "job": job, "start_us": start_us, "end_us": end_us, "nodes": nodes}
            for name, column in self.columns.items():
                column.append(list(servers) if name == "servers" else given.get(name))
            tally.records += 1

    def table(self) -> pl.DataFrame:
        """Return the jobs."""
        return pl.DataFrame(self.columns, schema=JOBS.schema)
