"""The traces of a folder do not grow beyond their limit, and say that they reached it."""

import json
import subprocess
import sys

import pytest

from traincheck_instrument.sink import limit as sink_limit
from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.writer import Writer
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.validation import FileCheck

MAX_BYTES = 200_000


def header(rank, role="main", world_size=1):
    return {
        "kind": "header",
        "schema": "traincheck.trace",
        "version": "1.0",
        "run_id": "r",
        "host": "h",
        "pid": rank,
        "role": role,
        "rank": rank,
        "local_rank": rank,
        "world_size": world_size,
        "clock": {"wall_ns": 1, "monotonic_ns": 1},
        "recording": {"mode": "full"},
    }


def batch(number, length=50):
    place = {"thread": 0, "step": 0}
    told = [{"kind": "function", **place, "seq": 0, "name": "f" * 60}] if number == 0 else []
    first = length * number + len(told)
    return told + [
        {"kind": "call_begin", **place, "seq": seq, "id": seq, "function": "f" * 60}
        for seq in range(first, length * (number + 1))
    ]


def footer(counts):
    return {"kind": "footer", "records": dict(counts)}


def total(folder):
    return sum(path.stat().st_size for path in folder.glob("trace_*"))


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the writer of a process."""

    def writer(rank, *, max_bytes=MAX_BYTES, compresses=False, **of_header):
        file = TraceFile(tmp_path, f"trace_r{rank}_p{rank}", compresses)
        made = Writer(file, SizeLimit(tmp_path, max_bytes))
        made.write([header(rank, **of_header)])
        return made

    return writer


def fill(*writers, length=50):
    """Have processes write in turn until all of them are full; return how many batches each did."""
    for number in range(1000):
        for writer in writers:
            if not writer.has_ended:
                writer.write(batch(number, length))
        if all(writer.has_ended for writer in writers):
            return number
    raise AssertionError


def check(folder):
    """Return the records of each trace of a folder, which must be valid."""
    paths = sorted(folder.glob("trace_*"))
    for path in paths:
        assert [*FileCheck(path).problems()] == []
    return [[*map(loads, path.read_text().splitlines())] for path in paths]


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_all_traces_together_stay_below_the_limit(tmp_path, make, ranks, capsys):
    """Each ends with the gap and, at a clean end, its footer; most of the room was used."""
    writers = [make(rank, world_size=ranks) for rank in range(ranks)]

    fill(*writers)
    for writer in writers:
        writer.end(footer)
    told = capsys.readouterr().err.splitlines()

    kept = MAX_BYTES // 64 + ranks * (4096 + 500)
    assert MAX_BYTES - kept < total(tmp_path) <= MAX_BYTES
    for *_, gap, last in check(tmp_path):
        assert (gap["kind"], gap["reason"], gap["count"]) == ("gap", "limit", None)
        assert "--max-trace-size" in gap["detail"]
        assert last["kind"] == "footer"
    assert len(told) == ranks
    assert all("--max-trace-size" in line for line in told)


RANK = """\
import json, sys, time
from pathlib import Path
from traincheck_instrument.sink.shard import Shard, ShardOptions

folder, rank, limit, pause, header = sys.argv[1:]
header = {**json.loads(header), "rank": int(rank), "local_rank": int(rank), "pid": int(rank)}
header["recording"]["functions"] = ["torch.nn.functional.f%d" % one for one in range(800)]
place = {"thread": 0, "step": 0}
is_full = False
def stop():
    global is_full
    is_full = True
options = ShardOptions(max_bytes=int(limit))
shard = Shard(Path(folder), lambda: header, lambda: int(rank), options, stop)
shard.open()
print("ready", flush=True)
sys.stdin.readline()
seq = 0
shard.append({"kind": "function", **place, "seq": 0, "name": "f" * 200})
while not is_full:
    for _ in range(200):
        seq += 1
        shard.append({"kind": "call_begin", **place, "seq": seq, "id": seq, "function": "f" * 200})
    time.sleep(float(pause))
shard.close(lambda counts: {"kind": "footer", "records": dict(counts)})
"""


def test_processes_of_unequal_pace_share_the_room(tmp_path):
    """Fast ones and slow ones at once: never more than the limit, nearly all of it, none left out.

    Each was recorded until the room was all but used, whatever the others had taken by then.
    """
    max_bytes, pauses = 8_000_000, [0, 0, 0.001, 0.01]
    known = json.dumps(header(0, world_size=len(pauses)))
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, tmp_path, str(rank), str(max_bytes), str(pause), known],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for rank, pause in enumerate(pauses)
    ]
    for rank in ranks:
        assert rank.stdout.readline() == b"ready\n"
    for rank in ranks:
        rank.stdin.write(b"\n")
        rank.stdin.flush()
    for rank in ranks:
        rank.communicate(timeout=300)
        assert rank.returncode == 0

    traces = check(tmp_path)

    assert 0.95 * max_bytes < total(tmp_path) <= max_bytes
    assert [trace[-1]["kind"] for trace in traces] == ["footer"] * 4
    assert [trace[-2]["reason"] for trace in traces] == ["limit"] * 4
    assert all(len(trace) > 200 for trace in traces)


def test_what_does_not_fit_as_a_whole_is_written_in_part(tmp_path, make):
    """A batch larger than the room does not end the trace where it begins."""
    writer = make(0)

    writer.write(batch(0, length=5000))

    assert writer.has_ended
    assert MAX_BYTES * 0.9 < total(tmp_path) <= MAX_BYTES


def test_a_compressed_trace_uses_the_room_too(tmp_path, make):
    """Pieces of a batch are members of their own."""
    writer = make(0, compresses=True, max_bytes=30_000)

    for number in range(1000):
        if not writer.has_ended:
            writer.write(batch(number, length=1000))

    assert writer.has_ended
    assert 30_000 * 0.6 < total(tmp_path) <= 30_000


def test_a_reader_says_that_the_trace_is_incomplete(tmp_path, make):
    """Although it has a footer."""
    writer = make(0)
    fill(writer)
    writer.end(footer)
    run = open_run([tmp_path])

    for _ in run.stream():
        pass

    (reason,) = run.incomplete_because()
    assert "limit" in reason


def test_what_others_wrote_before_counts(tmp_path, make):
    """A folder that is nearly full leaves little room; other files in it do not count."""
    (tmp_path / "model.pt").write_bytes(bytes(10 * MAX_BYTES))
    alone = fill(make(0))
    for path in tmp_path.glob("trace_*"):
        path.unlink()
    (tmp_path / "trace_r1_p1.json").write_bytes(bytes(MAX_BYTES // 2))

    assert fill(make(0)) < alone * 0.6


def test_an_earlier_trace_of_the_same_name_counts(tmp_path, make):
    """Process numbers come again; the file of the earlier one is not that of this one."""
    (tmp_path / "trace_r0_p0.json").write_bytes(bytes(MAX_BYTES // 2))

    fill(make(0))

    assert total(tmp_path) <= MAX_BYTES


class Time:
    """A clock that stands."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    standing = Time()
    monkeypatch.setattr(sink_limit, "time", standing)
    return standing


def test_what_others_write_is_seen_in_time(tmp_path, clock):
    """After a second the folder is looked at again, also if this trace took nothing."""
    limit = SizeLimit(tmp_path, MAX_BYTES)
    assert limit.admits("", 0, 100, is_least=True)
    (tmp_path / "trace_r1_p1.json").write_bytes(bytes(MAX_BYTES))

    assert limit.admits("", 0, 100, is_least=True)
    clock.now += 1

    assert not limit.admits("", 0, 100, is_least=True)


def share(limit):
    """Return the most that a trace may take at once."""
    return max(
        size for size in range(0, MAX_BYTES, 100) if limit.admits("", 0, size, is_least=True)
    )


def test_each_of_those_that_grow_has_a_share_and_a_reserve(tmp_path, clock):
    """Also if two looks come so close that nobody grew between them; who stops growing has none."""
    limit = SizeLimit(tmp_path, MAX_BYTES)
    other = tmp_path / "trace_r1_p1.json"
    other.write_bytes(bytes(1000))
    room = MAX_BYTES - MAX_BYTES // 64
    assert share(limit) == (room - 1000 - 4096) // 100 * 100
    clock.now += 1
    other.write_bytes(bytes(2000))

    expected = (room - 2000 - 2 * 4096) // 2 // 100 * 100
    assert share(limit) == expected
    clock.now += 0.5
    assert share(limit) == expected
    clock.now += 3

    assert share(limit) == (room - 2000 - 4096) // 100 * 100


def test_a_worker_that_starts_in_a_full_folder_leaves_no_file(tmp_path, make, capsys):
    """Each pass over a data set starts workers; nothing of that is a fault of the disk."""
    (tmp_path / "trace_r1_p1.json").write_bytes(bytes(MAX_BYTES))

    worker = make(5, role="worker")
    worker.write(batch(0))
    worker.end(footer)

    assert worker.has_ended
    assert not worker.file.path.exists()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("free", "kinds"), [(2000, ["header", "gap", "footer"]), (0, None)])
def test_a_main_process_that_starts_in_a_full_folder(tmp_path, make, free, kinds, capsys):
    """It leaves a header and why there is no more, if they fit; it is told once in any case."""
    (tmp_path / "trace_r1_p1.json").write_bytes(bytes(MAX_BYTES - free))

    main = make(0)
    main.end(footer)

    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "--max-trace-size" in told
    assert total(tmp_path) <= MAX_BYTES
    assert main.file.path.exists() == (kinds is not None)
    if kinds:
        assert [loads(line)["kind"] for line in main.file.path.read_text().splitlines()] == kinds


def test_the_gap_comes_after_all_that_is_on_disk(tmp_path, make):
    """Also where the last records are facts."""
    writer = make(0)
    writer.write(batch(0, length=2))
    stage = {"kind": "stage", "thread": 0, "seq": 2, "step": 0, "stage": "training"}
    writer.write([stage])
    other = tmp_path / "trace_r1_p1.json"
    other.write_bytes(bytes(MAX_BYTES))
    writer.write([{**stage, "seq": 3, "stage": "evaluation"}] * 400)
    other.unlink()

    (records,) = check(tmp_path)

    assert records[-1]["reason"] == "limit"
