"""Each format of counters is recognised and read, with its damage counted."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ioprism import BrokenTraceError, OverBudgetError
from ioprism.model.counters import SECOND
from ioprism.servers import ReadingOptions, Tally
from ioprism.servers.raw_files import find_counter_reader
from tests.conftest import TEST_DATA

SAMPLES = TEST_DATA / "counters"
IO_S = (
    "_io_s_ _n_ 199.18.1.8 _nn_ node1 _rc_ 0 _t_ 1066660148 _tu_ 407431 _br_ 6291456 "
    "_bw_ 314572800 _oc_ 10 _cc_ 16 _rdc_ 101 _wc_ 300 _dir_ 7 _iu_ 2"
)
FS_IO_S = (
    "_fs_io_s_ _n_ 10.22.0.106 _nn_ ib-pitzer-rw02.ten _rc_ 0 _t_ 1579358234 _tu_ 53212 "
    "_cl_ gpfs.domain _fs_ scratch _d_ 48 _br_ 205607400434 _bw_ 74839282351 _oc_ 2377656 "
    "_cc_ 2201576 _rdc_ 59420404 _wc_ 18874626 _dir_ 40971 _iu_ 544768"
)
OTHERS = """_response_ begin mmpmon io_s
_failed_ _n_ 199.18.1.2 _nn_ node1 _rc_ 668 _t_ 1121974459 _tu_ 616867
_ver_ _n_ 199.18.1.8 _nn_ node1 _v_ 2 _lv_ 4 _vt_ 0
_rhist_ _n_ 1.2.3.4 _nn_ node1 _req_ nr 512;1024 =
_response_ end
"""
HUMAN = (SAMPLES / "mmpmon_text.txt").read_text()
STATS = (SAMPLES / "stats.txt").read_text()
JOB_STATS = (SAMPLES / "job_stats.txt").read_text()
PROMETHEUS = (SAMPLES / "prometheus.txt").read_text()


def read(path: Path, **options: object) -> tuple[pl.DataFrame, Tally]:
    reader = find_counter_reader(path)
    assert reader is not None
    tally = Tally()
    found = list(reader.read(path, ReadingOptions(**options), tally))  # type: ignore[arg-type]
    return pl.concat(found), tally


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "raw.txt"


def test_mmpmon_records_of_nodes_and_file_systems(written: Path) -> None:
    written.write_text(f"{OTHERS}{IO_S}\n{FS_IO_S}\n")

    found, tally = read(written)

    node, system = found.sort("source", descending=True).to_dicts()
    assert (node["server"], node["part"], node["time_us"]) == ("node1", "", 1066660148407431)
    assert (node["br"], node["bw"], node["rdc"], node["wc"]) == (6291456, 314572800, 101, 300)
    assert (system["server"], system["part"]) == ("ib-pitzer-rw02.ten", "gpfs.domain/scratch")
    assert (system["oc"], system["cc"]) == (2377656, 2201576)
    assert tally.left_out == {"record of a request that failed": 1}


@pytest.mark.parametrize(
    "damaged",
    [IO_S[:60], IO_S.replace("6291456", "62x1456"), "garbage", FS_IO_S.replace("_fs_", "_xx_"),
     IO_S.replace("_br_ 6291456 ", ""), IO_S.replace("6291456", "9" * 25)],
)  # fmt: skip
def test_damaged_mmpmon_lines_are_counted_and_cost_only_themselves(
    written: Path, damaged: str
) -> None:
    written.write_bytes(f"{IO_S}\n{damaged}\n{FS_IO_S}\r\n\n".encode())

    found, tally = read(written)

    assert found.height == 2
    assert tally.left_out == {"damaged line": 1}


def test_mmpmon_keys_may_come_in_another_order(written: Path) -> None:
    other = IO_S.replace("_n_ 199.18.1.8 _nn_ node1", "_nn_  node1 _n_ 199.18.1.8")
    written.write_text(f"{IO_S}\n{other}\n")

    found, _ = read(written)

    assert found.row(0) == found.row(1)


def test_failed_requests_and_impossible_times_are_no_samples(written: Path) -> None:
    failed, impossible = IO_S.replace("_rc_ 0", "_rc_ 1"), IO_S.replace("1066660148", "9" * 11)
    written.write_text(f"{IO_S}\n{failed}\n{impossible}\n")

    found, tally = read(written)

    assert found.height == 1
    assert tally.left_out == {
        "record of a request that failed": 1,
        "record with an impossible time": 1,
    }


def test_a_time_that_would_overflow_is_impossible(written: Path) -> None:
    written.write_text(f"{IO_S}\n{IO_S.replace('1066660148', '18446744073709')}\n")

    found, tally = read(written)

    assert found.height == 1
    assert tally.left_out == {"record with an impossible time": 1}


def test_clocks_that_go_back_are_noted(written: Path) -> None:
    written.write_text(f"{IO_S}\n{IO_S.replace('1066660148', '1066660000')}\n")

    _, tally = read(written)

    assert any("time goes backwards in the records of 1 servers" in w for w in tally.warnings())


def test_mmpmon_as_people_read_it(written: Path) -> None:
    written.write_text(HUMAN)

    found, tally = read(written)

    assert found["part"].to_list() == ["", "cl.example/gpfs2"]
    assert found["time_us"].to_list() == [1066660148407431, 1066660148407432]
    assert found["bw"].to_list() == [314572800, 2]
    assert tally.left_out == {"record of a request that failed": 1}


def test_lustre_stats_of_targets(written: Path) -> None:
    written.write_text(STATS)

    found, tally = read(written)

    ost, mdt = found.to_dicts()
    assert (ost["server"], ost["wc"], ost["br"]) == ("fs-OST0000", 4298711, 0)
    assert ost["bw"] == 16552048697344
    assert (ost["time_us"], ost["since_us"]) == (1510782606789180, 1500000000324534)
    assert (mdt["server"], mdt["oc"], mdt["cc"], mdt["br"]) == ("fs-MDT0000", 70, 69, None)
    assert not tally.left_out


def test_lustre_job_stats_keep_identifiers_that_yaml_would_change(written: Path) -> None:
    written.write_text(JOB_STATS + "  read_bytes: { samples: broken\n")

    found, tally = read(written)

    assert found["job"].to_list() == ["43", "no", "12:30:45", "", "@foo.0"]
    assert found["br"].to_list() == [512000, 0, 1, 2, 3]
    assert found["wc"].to_list() == [0, 52, 0, 0, 0]
    assert found["since_us"].to_list()[1] == 1686153000 * SECOND
    assert tally.left_out == {"damaged line": 1}


def test_a_file_of_lustre_without_parameter_names_is_named_by_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "fs-OST0007" / "stats"
    path.parent.mkdir()
    path.write_text(STATS.partition("\n")[2].partition("mdt.")[0])

    found, _ = read(path)

    assert found["server"].to_list() == ["fs-OST0007"]


def test_prometheus_text_of_targets_and_jobs(written: Path) -> None:
    written.write_text(PROMETHEUS)

    found, tally = read(written, time_us=1_700_000_000 * SECOND)

    rows = {(row["server"], row["job"]): row for row in found.to_dicts()}
    assert rows["fs-OST0000", "24"]["bw"] == 215147593728
    assert rows["fs-OST0000", "24"]["wc"] == 51295
    assert rows["fs-OST0000", None]["br"] == 4096
    assert rows["fs-MDT0000", None]["oc"] == 12
    assert tally.left_out == {"damaged line": 1}


def test_a_scrape_without_time_is_refused_with_a_hint(written: Path) -> None:
    written.write_text(PROMETHEUS)

    with pytest.raises(BrokenTraceError, match="--time SECONDS"):
        read(written)


def test_a_table_with_damaged_cells_loses_only_those_rows(written: Path) -> None:
    written.write_text(
        "server,t,br,bw,rdc,wc,oc,cc\nion0,0,1,2,3,4,5,6\nion0,x,1,2,3,4,5,6\n"
        "ion0,120.5,,2,3,4,5,6\nion0,240,1,2\nion0,1e400,1,2,3,4,5,6\nion0,360,-1,2,3,4,5,6\n"
    )

    found, tally = read(written)

    assert found["time_us"].to_list() == [0, 120_500_000, 240 * SECOND]
    assert found["br"].to_list() == [1, None, 1]
    assert tally.left_out == {"damaged line": 2, "record with an impossible counter": 1}


def test_gzip_is_undone_and_its_damage_told(tmp_path: Path) -> None:
    text = "".join(f"{IO_S.replace('1066660148', str(1066660148 + n))}\n" for n in range(5000))
    whole, cut = tmp_path / "whole.gz", tmp_path / "cut.gz"
    whole.write_bytes(gzip.compress(text.encode()))
    cut.write_bytes(whole.read_bytes()[:-2000])

    found, _ = read(whole)
    some, tally = read(cut)

    assert found.height == 5000
    assert some.height < 5000
    assert any("cut short" in warning for warning in tally.warnings())


def test_an_endless_line_is_one_damaged_line(written: Path) -> None:
    with written.open("w") as file:
        file.write(f"{IO_S}\n")
        file.write("x" * (40 * 2**20))
        file.write(f"\n{FS_IO_S}\n")

    found, tally = read(written)

    assert found.height == 2
    assert tally.left_out == {"damaged line": 1}


@pytest.fixture
def lmt(tmp_path: Path) -> Path:
    path = tmp_path / "lmt.sqlite3"
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE TIMESTAMP_INFO (TS_ID INTEGER, TIMESTAMP TEXT);
        CREATE TABLE OST_INFO (OST_ID INTEGER, OST_NAME TEXT);
        CREATE TABLE OST_DATA (OST_ID INTEGER, TS_ID INTEGER, READ_BYTES INTEGER,
                               WRITE_BYTES INTEGER);
        INSERT INTO TIMESTAMP_INFO VALUES (1, '2018-01-28 00:00:00'), (2, '2018-01-28 00:00:05'),
                                          (3, 'never');
        INSERT INTO OST_INFO VALUES (7, 'snx-OST0000');
        INSERT INTO OST_DATA VALUES (7, 1, 10, 20), (7, 2, 30, 40), (7, 3, 1, 1);
    """)
    database.commit()
    database.close()
    return path


def test_lmt_databases_are_read_in_the_zone_given(lmt: Path) -> None:
    found, tally = read(lmt, timezone="America/Los_Angeles")

    assert found["time_us"].to_list() == [1517126400 * SECOND, 1517126405 * SECOND]
    assert found["bw"].to_list() == [20, 40]
    assert found["wc"].null_count() == 2
    assert tally.left_out == {"damaged line": 1}


def test_records_of_a_target_without_a_name_are_counted(lmt: Path) -> None:
    database = sqlite3.connect(lmt)
    database.execute("UPDATE OST_INFO SET OST_NAME = ''")
    database.commit()
    database.close()

    found, tally = read(lmt)

    assert found.is_empty()
    assert tally.left_out.total() == 3


def test_a_damaged_database_is_one_clear_error(lmt: Path) -> None:
    database = sqlite3.connect(lmt)
    database.execute("DROP TABLE OST_INFO")
    database.commit()
    database.close()

    with pytest.raises(BrokenTraceError, match="the database cannot be read"):
        read(lmt)


def test_tokio_time_series_become_counters_and_negative_zero_a_gap(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "series.hdf5"
    with h5py.File(path, "w") as file:
        group = file.create_group("datatargets")
        group["timestamps"] = np.arange(4) * 10 + 1000
        for name, scale in (("readbytes", 1.0), ("writebytes", 100.0)):
            group[name] = np.array([[1.0, 2.0], [-0.0, 4.0], [5.0, 6.0], [7.0, 8.0]]) * scale
            group[name].attrs["columns"] = np.array([b"OST0", b"OST1"])

    found, _ = read(path)

    first = found.filter(server="OST0")
    assert first["time_us"].to_list() == [n * SECOND for n in (1000, 1010, 1030, 1040)]
    assert first["bw"].to_list() == [0, 100, 600, 1300]
    assert first["since_us"].unique().to_list() == [1000 * SECOND]


def test_a_series_whose_size_is_only_said_takes_no_memory(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "series.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("datatargets/timestamps", (2**45,), "i8", chunks=(1024,))

    with pytest.raises(OverBudgetError, match="--reading-budget"):
        read(path)


def test_hdf5_of_something_else_is_one_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "series.hdf5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\x00" * 100)

    with pytest.raises(BrokenTraceError, match="TOKIO time series cannot be read"):
        read(path)


MMPERFMON = """
Legend:
 1:\tnode1.example|GPFSFilesystem|gpfs.example|scratch|gpfs_fs_bytes_read
 2:\tnode1.example|GPFSFilesystem|gpfs.example|scratch|gpfs_fs_bytes_written
 3:\tnode1.example|Memory|mem_total
 4:\tnode1.example|GPFSNSDDisk|nsd7|gpfs_nsdds_bytes_written

Row           Timestamp gpfs_fs_bytes_read gpfs_fs_bytes_written   mem_total gpfs_nsdds_bytes
  1 2019-01-08-13:00:00                  0                  1144  31371.0 MB                10
  2 2019-01-08-13:01:00                100                  null  31371.0 MB                20
  3 2019-01-08-13:02:00                200                  2000  31371.0 MB                30
"""


def test_mmperfmon_intervals_are_added_up_and_null_is_a_gap(written: Path) -> None:
    written.write_text(MMPERFMON)

    found, tally = read(written, timezone="Europe/Berlin")

    first = 1_546_948_800 * SECOND  # 12:00 UTC
    mount = found.filter(server="node1.example")
    assert mount["part"].unique().to_list() == ["gpfs.example/scratch"]
    assert mount["time_us"].to_list() == [first + n * 60 * SECOND for n in (0, 1, 3)]
    assert mount["br"].to_list() == [0, 0, 200]
    assert mount["bw"].to_list() == [0, 1144, 3144]
    assert found.filter(server="nsd7")["bw"].to_list() == [0, 10, 30, 60]
    assert not tally.left_out


def test_ldms_tables_of_jobs_on_targets_and_of_mounts(tmp_path: Path) -> None:
    jobs, mounts = tmp_path / "lustre_ost_job_stats", tmp_path / "lustre2_client"
    jobs.write_text(
        "#Time,Time_usec,ProducerName,fs_name,ost,job_id,snapshot_time,read_bytes_sum,"
        "write_bytes_sum,getattr\n1700000000.25,250000,oss1,fs,fs-OST0001,77,1699999999,5,7,1\n"
        "1700000060.25,250000,oss1,fs,fs-OST0001,77,1700000059,6,x,1\n"
    )
    mounts.write_text(
        "#Time,Time_usec,ProducerName,component_id,job_id,client.lstats.read_bytes#llite.home,"
        "client.lstats.open#llite.home,client.lstats.write_bytes#llite.scratch\n"
        "1700000000.0,0,node1,1,77,11,2,13\n"
    )

    of_jobs, tally = read(jobs)
    of_mounts, _ = read(mounts)

    row = of_jobs.row(0, named=True)
    assert (row["server"], row["job"], row["br"], row["bw"]) == ("fs-OST0001", "77", 5, 7)
    assert row["time_us"] == 1_700_000_000_250_000
    assert tally.left_out == {"damaged line": 1}
    rows = {row["part"]: row for row in of_mounts.to_dicts()}
    assert (rows["home"]["server"], rows["home"]["br"], rows["home"]["oc"]) == ("node1", 11, 2)
    assert (rows["scratch"]["bw"], rows["scratch"]["job"]) == (13, None)


def test_collectd_counters_and_stored_rates(tmp_path: Path) -> None:
    folder = tmp_path / "fs-OST0000" / "stats"
    folder.mkdir(parents=True)
    counted, rates = folder / "derive-write_bytes-2026-01-01", folder / "disk_octets-2026-01-01"
    counted.write_text("epoch,value\n1700000000.100,1000\n1700000010.100,3000\n")
    rates.write_text(
        "epoch,read,write\n1700000000.100,nan,nan\n1700000010.100,2.5,100.0\n"
        "1700000020.100,0.0,300.0\n"
    )

    of_counter, _ = read(counted)
    of_rates, _ = read(rates)

    assert of_counter.select("server", "bw").rows() == [("fs-OST0000", 1000), ("fs-OST0000", 3000)]
    assert of_rates.select("br", "bw").rows() == [(0, 0), (25, 1000), (25, 4000)]
