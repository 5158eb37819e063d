"""Tables are what they are declared to be."""

from __future__ import annotations

import polars as pl
import pytest

from ioprism import EVENTS, Mount, file_table
from ioprism.model.schema import TABLES, Table


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_says_what_it_means(table: Table) -> None:
    assert all(column.meaning for column in table.columns)
    assert len(set(table.names)) == len(table.columns)
    assert table.empty().schema == table.schema


def test_a_frame_is_brought_into_order_and_missing_columns_become_null() -> None:
    frame = EVENTS.conform(pl.DataFrame({"bytes": [1], "start": [0], "extra": ["x"]}))

    assert frame.schema == EVENTS.schema
    assert frame["start"].to_list() == [0.0]
    assert frame["offset"].to_list() == [None]


@pytest.mark.parametrize(
    ("path", "directory", "pattern", "extension"),
    [
        ("/scratch/run7/ckpt.0012.h5", "/scratch/run7", "/scratch/run#/ckpt.#.h#", "h5"),
        ("/data/README", "/data", "/data/README", None),
        ("/home/.profile", "/home", "/home/.profile", None),
        ("relative.txt", "", "relative.txt", "txt"),
        ("/", "", "/", None),
    ],
)
def test_what_a_path_tells_is_derived(
    path: str, directory: str, pattern: str, extension: str | None
) -> None:
    row = file_table([path]).row(0, named=True)

    assert (row["directory"], row["pattern"], row["extension"]) == (directory, pattern, extension)


def test_a_file_lies_under_its_longest_mount_point() -> None:
    mounts = [Mount("/", "ext4"), Mount("/scratch", "lustre"), Mount("/scratch/tmp", "tmpfs")]
    table = file_table(["/scratch/a", "/scratch/tmp/b", "/scratched", "/etc/c", "<STDOUT>"], mounts)

    assert table["mount"].to_list() == ["/scratch", "/scratch/tmp", "/", "/", None]
    assert table["filesystem"].to_list() == ["lustre", "tmpfs", "ext4", "ext4", None]
    assert table["kind"].to_list() == ["file"] * 4 + ["console"]
