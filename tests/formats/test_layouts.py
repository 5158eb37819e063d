"""Layouts are read from CSV and from what `lfs getstripe` prints, as text and as YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioprism import BrokenTraceError, NoSuchTraceError
from ioprism.formats.beside_trace import read_layout
from ioprism.model.usage import Striping

TEXT = """/scratch/out
/scratch/out/a.h5
lmm_stripe_count:  2
lmm_stripe_size:   4194304
lmm_pattern:       raid0
lmm_layout_gen:    0
lmm_stripe_offset: 3
\tobdidx\t\t objid\t\t objid\t\t group
\t     3\t      60394\t       0xebea\t             0
\t     7\t      60395\t       0xebeb\t             0

/scratch/out/b.h5
lmm_stripe_count:  1
lmm_stripe_size:   1048576
\tobdidx\t\t objid\t\t objid\t\t group
\t     1\t      60396\t       0xebec\t             0
"""
YAML = """/scratch/out/a.h5
  lmm_stripe_count:  2
  lmm_stripe_size:   4194304
  lmm_objects:
      - l_ost_idx: 3
        l_fid:     0x100030000:0xebea:0x0
      - l_ost_idx: 7
        l_fid:     0x100070000:0xebeb:0x0
"""
CSV = "path,targets,stripe_size\n/scratch/out/a.h5,3;7,4194304\n/scratch/out/b.h5,1,\n"


@pytest.mark.parametrize(("text", "files"), [(TEXT, 2), (YAML, 1), (CSV, 2)])
def test_the_targets_of_each_file_are_read_in_stripe_order(
    tmp_path: Path, text: str, files: int
) -> None:
    path = tmp_path / "layout"
    path.write_text(text)

    found = read_layout(path)

    assert len(found) == files
    assert found["/scratch/out/a.h5"] == Striping(4194304, (3, 7))


def test_a_missing_file_and_one_without_layouts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTraceError):
        read_layout(tmp_path / "none")
    empty = tmp_path / "empty"
    empty.write_text("hello\n")
    with pytest.raises(BrokenTraceError, match="does not list the storage targets"):
        read_layout(empty)
