"""A job is described by what it did, each byte counted once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ioprism import Characteristics, characterise, read
from ioprism.model.trace import LazyTables
from tests.conftest import TEST_DATA

DATA = TEST_DATA / "darshan"


def described(name: str) -> Characteristics:
    return characterise(read(DATA / f"{name}.darshan"))


@pytest.mark.parametrize(
    "name", ["a_ckpt_fpp_period5s", "c_rank0_all_io", "e_mpiio_collective", "g_straggler_rank2"]
)
def test_bytes_equal_what_the_program_counted(name: str) -> None:
    truth = json.loads((DATA / f"{name}.truth.json").read_text())
    layers = described(name).by_layer
    layer = layers.get("mpiio", layers["posix"])

    assert sum(a.bytes for a in layer.values()) == sum(r["bytes"] for r in truth["ranks"])


def test_bytes_that_pass_two_interfaces_are_counted_once() -> None:
    found = described("e_mpiio_collective")

    assert found.by_layer["mpiio"]["write"].bytes == found.by_layer["posix"]["write"].bytes
    console = found.by_layer["stdio"]["write"].bytes
    assert found.by_operation["write"].bytes == found.by_layer["posix"]["write"].bytes + console


def test_time_is_that_of_the_interface_the_program_called() -> None:
    found = described("e_mpiio_collective")
    in_mpi = sum(amount.time for amount in found.by_layer["mpiio"].values())
    in_stdio = sum(amount.time for amount in found.by_layer["stdio"].values())

    assert found.io_time == pytest.approx(in_mpi + in_stdio)
    assert found.total.time < 0.01 * found.io_time


def test_data_sets_are_not_files_and_their_time_is_the_files_time() -> None:
    found = described("n_hdf5_collective_write")

    assert found.files == 1
    assert found.io_time == pytest.approx(sum(a.time for a in found.by_layer["hdf5"].values()))


def test_events_answer_where_there_are_no_counters() -> None:
    trace = read(DATA / "e_mpiio_collective.darshan")
    blind = replace(trace, counters=LazyTables({}))
    by_counters = characterise(trace)
    by_events = characterise(blind)

    for layer in ("posix", "mpiio"):
        for kind in ("read", "write"):
            seen, counted = by_events.by_layer[layer][kind], by_counters.by_layer[layer][kind]
            assert (seen.operations, seen.bytes) == (counted.operations, counted.bytes)
    assert by_events.request_sizes == by_counters.request_sizes


def test_hosts_and_processes_are_counted() -> None:
    found = described("m_threads_dxt_v2_pthread_id")

    assert (found.hosts, found.processes, found.job.ranks) == (1, 2, 2)  # of four threads each


def test_an_empty_log_has_nothing_but_a_job() -> None:
    trace = read(DATA / "a_ckpt_fpp_period5s.darshan")
    empty = replace(trace, counters=LazyTables({}), partitions=())
    found = characterise(empty)

    assert found.total.operations == found.files == 0
    assert found.job.ranks == 4
