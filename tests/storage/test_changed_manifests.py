"""A store that somebody changed, with checksums that are right, is one clear error."""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ioprism import IoprismError, api, convert, read, servers
from ioprism.reports import to_json
from ioprism.servers.store import LEDGER, open_store
from ioprism.servers.store import MANIFEST as SERVERS
from ioprism.site.store import MANIFEST as SITE
from ioprism.site.store import make_site, open_site
from ioprism.storage.checked import checked_text
from ioprism.storage.trace_store import MANIFEST, _checksum
from tests.conftest import TEST_DATA
from tests.site.test_site_store import batch

HUGE = 10**400
ODD: tuple[Any, ...] = (
       None, True, -1, 2**70, 1.5, float("inf"), float("nan"), "", "x", "\0", "../a", [], ["x"],
       {}, {"a": 1}, HUGE)  # fmt: skip
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where something can be changed; of a list, its first item."""
    yield place
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:1])
        if isinstance(value, list)
        else ()
    )
    for key, item in inner:
        yield from places(item, (*place, key))


def changed(document: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    whole = copy.deepcopy(document)
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return whole


def unclear(
    path: Path, ask: Callable[[], object], text: Callable[[Any], str] = json.dumps
) -> list[str]:
    """What comes out of changed documents that is neither an answer nor one of our errors."""
    document = json.loads(path.read_text())
    document.pop("checksum", None)
    found = []
    for number, place in enumerate(places(document)):
        for value in ODD[number % 3 :: 3]:  # all of them, over three neighbouring places
            whole = changed(document, place, value)
            if text is checked_text and not isinstance(whole, dict):
                continue
            sys.set_int_max_str_digits(0)
            path.write_text(text(whole))
            sys.set_int_max_str_digits(4300)
            try:
                ask()
            except IoprismError as error:
                if not str(error):
                    found.append(f"{place} {value!r:.20}: no message")
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                found.append(f"{place} {value!r:.20}: {type(error).__name__}")
    path.write_text(text(document))
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stores") / "a.store"
    convert(read(TEST_DATA / "darshan/e_mpiio_collective.darshan"), made)
    return made


def answers(path: Path) -> None:
    trace = read(path)
    to_json.document(trace, api.characterise(trace).to_dict())
    api.diagnose(trace)


def test_a_changed_manifest_of_a_trace(store: Path) -> None:
    assert unclear(store / MANIFEST, lambda: answers(store)) == []


@pytest.mark.parametrize("name", ["files.parquet", "processes.parquet", "counters-00.parquet",
                                  "counters-03.parquet", "events-00000.parquet"])  # fmt: skip
def test_tables_that_are_not_what_they_are_called(store: Path, tmp_path: Path, name: str) -> None:
    manifest = json.loads((store / MANIFEST).read_text())
    words = {column: ["x"] for column in pl.read_parquet(store / name).columns}
    others = [pl.read_parquet(store / other) for other in manifest["checksums"] if other != name]
    found = []
    for number, table in enumerate([pl.DataFrame(), pl.DataFrame(words), *others]):
        copied = tmp_path / f"{number}.store"
        shutil.copytree(store, copied)
        table.write_parquet(copied / name)
        manifest["checksums"][name] = _checksum(copied / name)
        (copied / MANIFEST).write_text(json.dumps(manifest))
        try:
            answers(copied)
        except IoprismError:
            continue
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            found.append(f"{number}: {type(error).__name__}")

    assert found == []


def test_changed_documents_of_a_store_of_servers(tmp_path: Path) -> None:
    folder = tmp_path / "servers"
    servers.ingest(TEST_DATA / "servers/A_aligned.counters.csv", store=folder)

    assert unclear(folder / SERVERS, lambda: open_store(folder).servers(), checked_text) == []
    assert unclear(folder / LEDGER, lambda: open_store(folder).ledger(), checked_text) == []


def test_a_changed_manifest_of_a_site(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    with make_site(folder).adding() as site:
        site.add(batch("a", "b"))

    assert unclear(folder / SITE, lambda: open_site(folder).table("jobs"), checked_text) == []
