"""Each form of job list is recognised and read, with what is left out counted."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ioprism import BrokenTraceError, UnknownFormatError, UsageError
from ioprism.model.counters import SECOND
from ioprism.servers import ReadingOptions, Tally
from ioprism.servers.formats.records import (
    HostlistError,
    expand_hosts,
    map_servers,
    read_server_map,
)
from ioprism.servers.formats.schedulers import PbsReader
from ioprism.servers.raw_files import read_jobs

SACCT = """JobIDRaw|JobID|User|Account|Partition|NodeList|Start|End|State|JobName
1706861|1706861|ann|a1|short|None assigned|Unknown|Unknown|PENDING|fig5
605547|605547|bob|a2|long|node[01-03,7],login1|2017-01-04T16:57:11|2017-01-08T01:21:15|COMPLETED|cm1|old
22118|22103_0|bob|a2|long|node1|1483549031|1483549091|CANCELLED by 1234|array
22118.batch|22103_0.batch|||||1483549031|1483549091|COMPLETED|batch
1|1|x|y|z|node[1-|1483549031|1483549091|FAILED|broken nodes
1|1|x
"""


def read(path: Path, text: str, **options: object) -> tuple[pl.DataFrame, Tally]:
    path.write_text(text)
    tally = Tally()
    return read_jobs(path, ReadingOptions(**options), tally), tally  # type: ignore[arg-type]


def test_slurm_jobs_with_nodes_zones_and_separators_in_names(tmp_path: Path) -> None:
    found, tally = read(tmp_path / "jobs", SACCT, timezone="Europe/Berlin")

    jobs = {row["job"]: row for row in found.to_dicts()}
    assert jobs.keys() == {"605547", "22118"}
    assert jobs["605547"]["servers"] == ["node01", "node02", "node03", "node7", "login1"]
    assert jobs["605547"]["start_us"] == 1483545431 * SECOND
    assert jobs["605547"]["name"] == "cm1|old"
    assert jobs["22118"]["state"] == "CANCELLED"
    assert tally.left_out == {
        "job without a start or end": 1,
        "job with a damaged list of nodes": 1,
        "damaged line": 1,
    }


def test_slurm_times_in_the_hour_that_comes_twice_are_the_first(tmp_path: Path) -> None:
    text = "JobIDRaw|NodeList|Start|End\n1|n1|2021-10-31T02:30:00|2021-10-31T03:30:00\n"

    found, _ = read(tmp_path / "jobs", text, timezone="Europe/Berlin")

    assert found["end_us"][0] - found["start_us"][0] == 2 * 3600 * SECOND


def test_slurm_with_the_old_parsable_option(tmp_path: Path) -> None:
    text = "JobID|NodeList|Start|End|\n7|n1|1483549031|1483549091|\n"

    found, _ = read(tmp_path / "jobs", text)

    assert found["job"].to_list() == ["7"]


def test_local_times_without_a_zone_are_told(tmp_path: Path) -> None:
    _, tally = read(tmp_path / "jobs", SACCT)

    assert any("--timezone" in warning for warning in tally.warnings())
    with pytest.raises(UsageError, match="no time zone is called"):
        read(tmp_path / "jobs", SACCT, timezone="../../etc/passwd")


def test_pbs_records_of_ended_jobs(tmp_path: Path) -> None:
    text = (
        "04/05/2017 13:05:07;S;45.master23;user=vsc\n"
        '04/05/2017 13:06:53;E;45.master23;user=vsc group=g queue=short jobname="a = b" '
        "ctime=1491390300 start=1491390307 exec_host=node2801/0-1+node2803/0-1*2 "
        "end=1491390413 Exit_status=271 resources_used.walltime=00:01:46\n"
        "broken\n"
    )

    found, tally = read(tmp_path / "jobs", text)

    row = found.to_dicts()[0]
    assert row["servers"] == ["node2801", "node2803"]
    assert (row["user"], row["partition"], row["name"]) == ("vsc", "short", "a = b")
    assert row["end_us"] - row["start_us"] == 106 * SECOND
    assert tally.left_out == {"damaged line": 1}


def test_the_plain_table_keeps_each_run_once(tmp_path: Path) -> None:
    text = (
        "job_id,start,end,servers,user\na,0,100,ion0 ion1,ann\na,0,200,ion0 ion1,ann\n"
        "a,500,600,ion[2-3],ann\nb,5,5,ion0,bob\nc,1\n"
    )

    found, tally = read(tmp_path / "jobs", text)

    assert found["end_us"].to_list() == [200 * SECOND, 600 * SECOND]
    assert found["servers"].to_list() == [["ion0", "ion1"], ["ion2", "ion3"]]
    assert tally.left_out["job that does not end after its start"] == 1


def test_what_is_no_job_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="no reader recognises this file"):
        read(tmp_path / "jobs", "hello\n")


def test_nodes_are_replaced_by_the_servers_behind_them(tmp_path: Path) -> None:
    jobs, _ = read(tmp_path / "jobs", "job_id,start,end,servers\na,0,9,n[1-4]\nb,0,9,n9\n")
    path = tmp_path / "map.csv"
    path.write_text("node,server\nn[1-2],ion0\nn3,ion1\n")

    found = map_servers(jobs, read_server_map(path))

    assert found["servers"].to_list() == [["ion0", "ion0", "ion1"], []]  # once a node
    path.write_text("hello\n")
    with pytest.raises(BrokenTraceError, match="not a map from nodes to servers"):
        read_server_map(path)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("a[1-2]b[1,3]", ["a1b1", "a1b3", "a2b1", "a2b3"]),
        ("n1,n1,n2", ["n1", "n2"]),
        ("None assigned", []),
        ("(null)", []),
        ("", []),
    ],
)
def test_short_lists_of_hosts_are_expanded(text: str, hosts: list[str]) -> None:
    assert list(expand_hosts(text)) == hosts


@pytest.mark.parametrize(
    "text", ["n[1-", "n]1[", "n[3-1]", "n[x]", "n[[1]]", "n[0-999999999999]", "a[1-999]b[1-999]"]
)
def test_impossible_lists_of_hosts_are_refused_before_memory_is_taken(text: str) -> None:
    with pytest.raises(HostlistError):
        expand_hosts(text)


def test_pbs_tells_how_a_job_ended(tmp_path: Path) -> None:
    path = tmp_path / "20261001"
    ended = [("0", "COMPLETED"), ("271", "FAILED (271)"), (None, None)]
    lines = [
        f"10/01/2026 12:00:00;E;{number}.head;user=a start=100 end=200 exec_host=n1/0"
        + ("" if status is None else f" Exit_status={status}")
        for number, (status, _) in enumerate(ended)
    ]
    path.write_text("\n".join([*lines, ""]))
    jobs = PbsReader().read(path, ReadingOptions(), Tally())

    assert dict(zip(jobs["job"], jobs["state"], strict=True)) == {
        f"{number}.head": state for number, (_, state) in enumerate(ended)
    }


def test_a_star_stands_for_the_nodes_of_every_job(tmp_path: Path) -> None:
    jobs, _ = read(tmp_path / "jobs", "job_id,start,end,servers\na,0,9,n1\nb,0,9,n9\n")
    path = tmp_path / "map.csv"
    path.write_text("node,server\n*,OST0\n*,OST1\nn1,ion0\n")

    found = map_servers(jobs, read_server_map(path))

    assert found["servers"].to_list() == [["ion0", "OST0", "OST1"], ["OST0", "OST1"]]


LSF_SHORT = (
    '"JOB_FINISH" "9.11" 1389683139 404717 22025 33882739 128 1389642318 0 0 1389642771 '
    '"anna" "regular" "span[ptile=16]" "" "" "login4" "/scratch/anna" "" "%J.out" "%J.err" '
    '"1389642318.404717" 0 2 "16*host1201" "16*host1234" 64 60.0 "weather" '
    '"mpirun -R ""span[ptile=16]"" a.out" ' + " ".join(["-1"] * 19) + ' "" "climate" 0 128 "" "" 0'
)
LSF_ASKED = (
    '"JOB_FINISH" "10.1" 1527327585 7610 1000 33554438 1 1527326745 0 0 1527326746 "bob" "normal" '
    '"" "" "" "master" "" "" "" "" "10/1527326745.7610" 1 "pac" 2 "n1" "n1" 32 60.0 "" "sleep" '
    + " ".join(["-1"] * 19) + ' "" "default" 65280 1 "" "" 7 2048'
)  # fmt: skip


def test_lsf_accounting_names_hosts_once_and_knows_arrays(tmp_path: Path) -> None:
    text = f"{LSF_SHORT}\n{LSF_ASKED}\n" + '"JOB_FINISH" "10.1" 15 oh no\n"OTHER" "10.1" 1\n'
    jobs, tally = read(tmp_path / "lsb.acct", text)

    assert jobs["job"].to_list() == ["404717", "7610[7]"]
    assert jobs["servers"].to_list() == [["host1201", "host1234"], ["n1"]]
    assert jobs["nodes"].to_list() == [2, 1]
    assert jobs["start_us"].to_list() == [1389642771 * SECOND, 1527326746 * SECOND]
    assert jobs["end_us"].to_list() == [1389683139 * SECOND, 1527327585 * SECOND]
    assert jobs["account"].to_list() == ["climate", "default"]
    assert jobs["name"].to_list() == ["weather", None]
    assert jobs["state"].to_list() == ["COMPLETED", "FAILED"]
    assert tally.left_out == {"damaged line": 1}


BACCT = """Accounting information about jobs that are:
  - submitted by all users.
------------------------------------------------------------------------------

Job <1743>, Job Name <weather>, User <anna>, Project <climate>, Status <DONE>, Queue
                      <normal>, Command <mpirun a.out>
Tue Oct 13 20:50:11 2020: Submitted from host <login1>, CWD <$HOME>;
Tue Oct 13 20:51:00 2020: Dispatched 32 Task(s) on Host(s) <16*node01> <16*nod
                     e02>, Allocated 32 Slot(s) on Host(s) <16*node01> <16*node02>;
Tue Oct 13 22:51:00 2020: Completed <done>.

Accounting information about this job:
     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP
      0.19       49           7249     done         0.0000     2M     20M
------------------------------------------------------------------------------

Job <1744[3]>, User <bob>, Project <default>, Command <sleep 100>
Wed Oct 14 08:00:00 2020: Submitted from host <login1>, to Queue <short>;
Wed Oct 14 08:00:05 2020: Dispatched to <node07>;
Wed Oct 14 08:00:05 2020: Starting (Pid 4711);
Wed Oct 14 09:00:05 2020: Exited with exit code 1. The CPU time used is 0.1 seconds;
------------------------------------------------------------------------------

Job <1745>, User <bob>, Project <default>, Command <sleep 100>
Wed Oct 14 08:00:00: Submitted from host <login1>, to Queue <short>;
"""


def test_lsf_listings_are_joined_where_lines_are_broken(tmp_path: Path) -> None:
    jobs, tally = read(tmp_path / "bacct.txt", BACCT)

    assert jobs["job"].to_list() == ["1743", "1744[3]"]
    assert jobs["servers"].to_list() == [["node01", "node02"], ["node07"]]
    assert jobs["partition"].to_list() == ["normal", "short"]
    assert jobs["state"].to_list() == ["COMPLETED", "FAILED"]
    assert (jobs["end_us"] - jobs["start_us"]).to_list() == [7200 * SECOND, 3600 * SECOND]
    assert jobs["start_us"][0] == 1602622260 * SECOND
    assert tally.left_out == {"job without a start or end": 1}


def test_lsf_times_without_a_year_mean_the_latest_such_weekday(tmp_path: Path) -> None:
    text = BACCT.replace("2020: ", ": ").replace(" :", ":")
    jobs, _ = read(tmp_path / "bhist.txt", text)

    assert (jobs["end_us"] - jobs["start_us"]).to_list() == [7200 * SECOND, 3600 * SECOND]
    assert jobs["start_us"][0] >= 1602622260 * SECOND


LOADLEVELER = """=============== Job jugene.16250 ===============
             Job Id: jugene.16250
           Job Name: ocean
              Owner: diet
            Account: climate
--------------- Step jugene.16250.0 ---------------
        Job Step Id: jugene.16250.0
          Step Name: 0
         Queue Date: Tue Jul 24 10:19:37 CEST 2007
             Status: Completed
      Dispatch Time: Tue Jul 24 10:19:38 CEST 2007
         Start Time: Tue Jul 24 10:20:00 CEST 2007
    Completion Date: Tue Jul 24 12:20:00 CEST 2007
    Completion Code: 0
              Class: parallel
    Allocated Hosts : meso-2::MPI,us
                    + meso-3::MPI,us
--------------- Step jugene.16250.1 ---------------
        Job Step Id: jugene.16250.1
             Status: Completed
      Dispatch Time: Tue Jul 24 10:00:00 UTC 2007
    Completion Date: Tue Jul 24 11:00:00 UTC 2007
BG Partition Allocated: R00-M0
=============== Job Step jugene.16251.0 ===============
        Job Step Id: jugene.16251.0
             Status: Running
      Dispatch Time: Tue Jul 24 10:00:00 UTC 2007
    Completion Date:
     Allocated Host: meso-1
"""


def test_loadleveler_steps_have_hosts_or_a_partition(tmp_path: Path) -> None:
    jobs, tally = read(tmp_path / "llsummary.txt", LOADLEVELER, timezone="Europe/Berlin")

    assert jobs["job"].to_list() == ["jugene.16250.0", "jugene.16250.1"]
    assert jobs["servers"].to_list() == [["meso-2", "meso-3"], ["R00-M0"]]
    assert jobs["start_us"].to_list() == [1185265200 * SECOND, 1185271200 * SECOND]
    assert (jobs["end_us"] - jobs["start_us"]).to_list() == [7200 * SECOND, 3600 * SECOND]
    assert jobs["user"].to_list() == ["diet", "diet"]
    assert jobs["account"].to_list() == ["climate", "climate"]
    assert tally.left_out == {"job without a start or end": 1}


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("Tue 24 Jul 2007 11:30:00 AM CEST", "Tue 24 Jul 2007 01:00:00 PM CEST"),
        ("Tue 24 Jul 2007 11:30:00 CEST", "Tue 24 Jul 2007 13:00:00 CEST"),
        ("Tue Jul 24 11:30:00 2007", "Tue Jul 24 13:00:00 2007"),
        ("Tue 24 Jul 2007 09:30:00 AM UTC", "Tue 24 Jul 2007 11:00:00 AM UTC"),
    ],
)
def test_loadleveler_dates_follow_the_locale_of_the_listing(
    tmp_path: Path, start: str, end: str
) -> None:
    text = (
        "===== Job gate.7 =====\n         Owner: diet\n----- Step gate.7.0 -----\n"
        f" Dispatch Time: {start}\nCompletion Date: {end}\n Allocated Host: meso-1\n"
    )

    jobs, _ = read(tmp_path / "llsummary.txt", text, timezone="Europe/Berlin")

    assert jobs["start_us"].to_list() == [1185269400 * SECOND]
    assert jobs["end_us"].to_list() == [1185274800 * SECOND]


def test_the_servers_of_a_job_table_are_not_its_nodes(tmp_path: Path) -> None:
    rows = "a,0,9,ion0 ion1,\nb,0,9,ion0,64\n"
    jobs, _ = read(tmp_path / "jobs", f"job_id,start,end,servers,nodes\n{rows}")

    assert dict(jobs.select("job", "nodes").iter_rows()) == {"a": None, "b": 64}
