"""Replace compute nodes by the I/O servers behind them, from a CSV `node,server`."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl

from ioprism.errors import BrokenTraceError
from ioprism.formats.budget import Budget
from ioprism.formats.files import check_file
from ioprism.model.counters import Tally
from ioprism.servers.counter_formats.lines import text_lines
from ioprism.servers.job_formats.hostlist import HostlistError, expand_hosts

HINT = "Hint: the first line is `node,server`; nodes may be ranges such as node[1-32], or *."
BYTES_OF_PAIR = 200  # that a node and its server take
ANY = "*"  # every job uses the server, whatever its nodes


def read_server_map(source: Path) -> pl.DataFrame:
    """Return pairs of node and server; a node may have several servers.

    Raises:
        NoSuchTraceError: there is no such file.
        BrokenTraceError: it is no such table.
    """
    check_file(source)
    try:
        rows = list(csv.reader(text_lines(source, Tally())))
    except csv.Error as error:
        raise BrokenTraceError(
            f"it is not a CSV table ({error}).\n{HINT}", source=source
        ) from error
    if not rows or [word.strip() for word in rows[0]][:2] != ["node", "server"]:
        raise BrokenTraceError(f"this is not a map from nodes to servers.\n{HINT}", source=source)
    pairs: list[tuple[str, str]] = []
    budget = Budget(source)
    try:
        for row in rows[1:]:
            nodes = expand_hosts(_joined(row[0])) if len(row) >= 2 else ()
            budget.take(BYTES_OF_PAIR * len(nodes), "the lists of nodes")
            pairs += [(node, row[1].strip()) for node in nodes]
    except HostlistError as error:
        raise BrokenTraceError(f"{error}.\n{HINT}", source=source) from error
    return pl.DataFrame(pairs, schema={"node": pl.String, "server": pl.String}, orient="row")


def _joined(text: str) -> str:
    return ",".join(text.split())


def through_map(jobs: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs with the servers behind their nodes; unmapped nodes are left out.

    A server stands once for each of the job's nodes behind it: that is its weight there.
    """
    numbered = jobs.with_row_index("row")
    servers = (
        numbered.select("row", node="servers")
        .explode("node")
        .join(pairs, on="node", how="inner")
        .group_by("row")
        .agg(servers=pl.col("server").sort())
    )
    everywhere = pairs.filter(pl.col("node") == ANY)["server"].unique().sort()
    joined = numbered.drop("servers").join(servers, on="row", how="left").sort("row")
    own = pl.col("servers").fill_null([])
    return joined.with_columns(own.list.concat(everywhere.implode())).select(jobs.columns)
