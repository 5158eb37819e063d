"""A store in object storage is read as one that lies here."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from polars.testing import assert_frame_equal

from benchmarks.synthetic import checkpointing_job, synthesise
from ioprism import NoSuchTraceError, TraceError, convert, read
from ioprism.cli import main
from ioprism.text import address_of

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores") / "job.store"
    convert(synthesise(checkpointing_job()).trace, folder)
    return folder


@pytest.fixture(scope="module")
def bucket(store: Path) -> Iterator[str]:
    """A bucket of a server on this machine that speaks S3."""
    server = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    running.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        storage = fsspec.filesystem("s3")
        storage.mkdir("traces")
        storage.put(str(store), "traces/job.store", recursive=True)
        yield "s3://traces"
    running.stop()


def test_a_store_in_a_bucket_is_the_store(bucket: str, store: Path) -> None:
    there, here = read(Path(f"{bucket}/job.store")), read(store)

    assert_frame_equal(there.events(), here.events())
    assert_frame_equal(there.files, here.files)
    assert there.job == here.job


def test_a_command_takes_an_address(bucket: str) -> None:
    done = CliRunner().invoke(main, ["characterise", f"{bucket}/job.store", "--json"])

    assert done.exit_code == 0
    assert '"ranks": 64' in done.stdout
    assert f'"{bucket}/job.store"' in done.stdout


def test_what_is_not_in_the_bucket_is_one_message(bucket: str) -> None:
    with pytest.raises(NoSuchTraceError):
        read(Path(f"{bucket}/none.store"))


def test_a_log_in_the_bucket_is_one_message_that_says_what_can_be_there(bucket: str) -> None:
    with pytest.raises(TraceError, match="only stores are read from object storage"):
        read(Path(f"{bucket}/job.store/ioprism-trace.json"))


def test_memory_is_storage_too(store: Path) -> None:
    fsspec.filesystem("memory").put(str(store), "/there.store", recursive=True)

    assert_frame_equal(read(Path("memory://there.store")).events(), read(store).events())


def test_storage_that_nobody_knows_is_one_message() -> None:
    with pytest.raises(TraceError, match="cannot be used"):
        read(Path("nowhere://bucket/job.store"))


@pytest.mark.parametrize("path", ["/data/a:/b", "C:/logs", "run.store", "./s3:/x"])
def test_paths_of_this_machine_are_no_addresses(path: str) -> None:
    assert address_of(Path(path).absolute() if path.startswith("./") else Path(path)) is None


@pytest.mark.parametrize("command", ["diagnose", "insights"])
def test_messages_name_an_address_as_it_was_given(command: str) -> None:
    done = CliRunner().invoke(main, [command, "memory://none/job.store"])

    assert done.exit_code == 1
    assert "memory://none/job.store: no such file" in done.output


def test_a_damaged_file_is_named_by_its_address_not_by_the_copy(store: Path) -> None:
    storage = fsspec.filesystem("memory")
    storage.put(str(store), "/damaged.store", recursive=True)
    storage.pipe("/damaged.store/files.parquet", b"changed")

    with pytest.raises(TraceError, match=r"^memory://damaged\.store/files\.parquet: "):
        _ = read(Path("memory://damaged.store")).files


def test_findings_of_a_store_in_storage_are_those_of_the_store_here(store: Path) -> None:
    fsspec.filesystem("memory").put(str(store), "/judged.store", recursive=True)

    there, here = (
        CliRunner().invoke(main, ["insights", name]).output
        for name in ("memory://judged.store", str(store))
    )

    # The first line names the store.
    assert there.partition("\n")[2] == here.partition("\n")[2]
