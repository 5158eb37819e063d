"""The stripe layout of files on storage targets: a CSV file, or what `lfs getstripe` prints."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ioprism.errors import BrokenTraceError
from ioprism.formats.files import check_file
from ioprism.formats.text import open_text
from ioprism.model.usage import Striping

LARGEST = 256 * 2**20  # bytes of a layout file
USUAL_STRIPE = 2**20  # bytes, where the layout does not say: the default of Lustre
_TEXT_FIELD = re.compile(r"^\s*(?:-\s*)?(?:lmm_|lcme_)?(stripe_count|stripe_size):\s*(\d{1,18})\b")
_TEXT_OBJECT = re.compile(r"^\s+(\d{1,18})\s+\d+\s+0x[0-9a-f]+\s+\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,18}")
_YAML_OBJECT = re.compile(r"l_ost_idx:\s*(\d{1,18})\b")


def read_layout(path: Path) -> Mapping[str, Striping]:
    """Read a layout file: the targets of each path, in stripe order.

    Raises:
        NoSuchTraceError: the file does not exist.
        BrokenTraceError: nothing in it is a layout.
    """
    check_file(path)
    with open_text(path) as file:
        text = file.read(LARGEST).decode("utf-8", "replace")
    head = text.lstrip().partition("\n")[0]
    try:
        layouts = dict(_from_csv(text) if _is_csv(head) else _from_getstripe(text))
    except csv.Error as error:
        raise BrokenTraceError(
            f"it is not a CSV table ({error}).\nHint: check its quotes.", source=path
        ) from error
    if not layouts:
        raise BrokenTraceError(
            "it does not list the storage targets of any file.\nHint: give a CSV with the columns "
            "path,targets[,stripe_size], or the output of `lfs getstripe -r DIR`.",
            source=path,
        )
    return layouts


def _is_csv(head: str) -> bool:
    names = [name.strip().lower() for name in head.split(",")]
    return "path" in names and "targets" in names


def _from_csv(text: str) -> Iterator[tuple[str, Striping]]:
    for row in csv.DictReader(io.StringIO(text.lstrip()), skipinitialspace=True):
        fields = {str(key).strip().lower(): value for key, value in row.items() if key}
        targets = [name for name in re.split(r"[;\s]+", fields.get("targets") or "") if name]
        if not all(map(_NUMBER.fullmatch, targets)) or not targets or not fields.get("path"):
            continue
        size = (fields.get("stripe_size") or "").strip()
        stripe = int(size) if _NUMBER.fullmatch(size) else 0
        yield (
            str(fields["path"]),
            Striping(stripe or USUAL_STRIPE, tuple(int(name) for name in targets)),
        )


def _from_getstripe(text: str) -> Iterator[tuple[str, Striping]]:
    """A path stands alone on its line; fields and objects of the file follow it."""
    path: str | None = None
    size, targets = USUAL_STRIPE, list[int]()
    for line in text.splitlines():
        named = line.removeprefix("lmm_fid:").strip()
        field, item = _TEXT_FIELD.match(line), _YAML_OBJECT.search(line) or _TEXT_OBJECT.match(line)
        if item is not None:
            targets.append(int(item.group(1)))
        elif field is not None:
            size = int(field.group(2)) if field.group(1) == "stripe_size" else size
        elif named.startswith(("/", "./")) and ":" not in named:
            if path is not None and targets:
                yield path, Striping(size, tuple(targets))
            path, size, targets = named, USUAL_STRIPE, []
    if path is not None and targets:
        yield path, Striping(size, tuple(targets))
