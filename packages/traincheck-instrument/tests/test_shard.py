"""The way of records from the threads of the program to the file."""

import io
import os
import subprocess
import sys
import threading
import time

import pytest

from traincheck_instrument.sink import shard as sink
from traincheck_instrument.sink.shard import Shard, ShardOptions
from traincheck_instrument.sink.wake import Wake
from traincheck_trace_schema.codec import loads


def header():
    return {"kind": "header", "role": "main"}


def record(seq, thread=0):
    return {"kind": "call_begin", "thread": thread, "seq": seq, "step": 0}


def lines(path):
    return [loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def shard(tmp_path):
    """A shard, which is closed in the end."""
    made = Shard(tmp_path, header, lambda: 0)
    yield made
    made.close(None)


def test_the_records_of_all_threads_are_written_each_thread_in_its_order(shard):
    """None is lost, none comes twice, and the header comes first."""
    count = 3000

    def work(thread):
        for seq in range(count):
            shard.append(record(seq, thread))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shard.close(lambda counts: {"kind": "footer", "records": dict(counts)})

    first, *records, footer = lines(shard.path)

    assert first == header()
    assert footer["records"] == {"header": 1, "call_begin": 4 * count}
    for number in range(4):
        own = [one["seq"] for one in records if one["thread"] == number]
        assert own == list(range(count))


def test_a_stalled_disk_makes_the_producer_wait_and_loses_nothing(shard, monkeypatch):
    """What waits for the disk is bounded; when the disk goes on, so does the program."""
    monkeypatch.setattr(sink, "_WAIT_AT", 1000)
    disk, has_stalled, has_waited = threading.Lock(), threading.Event(), threading.Event()
    put, wait = type(shard._writer).write, shard._wait_for_room
    longest = 0

    def stalled_write(writer, records):
        has_stalled.set()
        with disk:
            put(writer, records)

    def observed_wait():
        nonlocal longest
        longest = max(longest, len(shard._waiting))
        has_waited.set()
        wait()

    def produce():
        for seq in range(5000):
            shard.append(record(seq))

    monkeypatch.setattr(type(shard._writer), "write", stalled_write)
    monkeypatch.setattr(shard, "_wait_for_room", observed_wait)
    producer = threading.Thread(target=produce)
    with disk:
        producer.start()
        assert has_stalled.wait(60)
        assert has_waited.wait(60)
        producer.join(0.2)
        assert producer.is_alive()
    producer.join()
    shard.close(None)

    assert longest <= 1000
    assert [one["seq"] for one in lines(shard.path)[1:]] == list(range(5000))


def test_a_full_trace_tells_the_recorder_and_takes_nothing_any_more(tmp_path):
    """The program goes on at full speed, and what it would record takes no memory."""
    is_full = threading.Event()
    shard = Shard(tmp_path, header, lambda: 0, ShardOptions(max_bytes=100_000), is_full.set)
    seq = 0
    while not is_full.wait(0):
        shard.append(record(seq))
        seq += 1
    for _ in range(50_000):
        shard.append(record(seq))

    assert not shard._waiting
    shard.close(lambda counts: {"kind": "footer", "records": dict(counts)})
    assert [one["kind"] for one in lines(shard.path)[-2:]] == ["gap", "footer"]
    assert shard.path.stat().st_size <= 100_000


def test_a_fault_of_the_writer_ends_the_trace_and_not_the_program(tmp_path, capsys):
    """It is told as what it is, in the trace too, and who makes records is told to stop."""
    stops = []
    shard = Shard(tmp_path, header, lambda: 0, on_stop=lambda: stops.append(True))
    shard.append(record(0))
    while not shard.path.exists() or shard.path.read_bytes().count(b"\n") < 2:
        time.sleep(0.01)
    shard.append({"no kind": "at all"})
    shard._thread.join()
    shard.append(record(1))
    shard.close(lambda _: {"kind": "footer"})

    told = capsys.readouterr().err
    *_, last = lines(shard.path)
    assert "a fault of the writer: KeyError" in told
    assert "can't be written" not in told
    assert (last["kind"], last["reason"], last["seq"]) == ("gap", "fault", 1)
    assert stops == [True]


def test_a_fault_before_the_header_leaves_no_file(shard, capsys):
    """There is nothing yet that it could be told in; it is told on stderr."""
    shard.append({"no kind": "at all"})
    shard._thread.join()
    shard.close(lambda _: {"kind": "footer"})

    assert "a fault of the writer: KeyError" in capsys.readouterr().err
    assert not shard.path.exists()


def test_a_fault_is_told_after_a_loss_too(shard, tmp_path, capsys):
    """A disk that refused and a fault are two things."""
    away = tmp_path.with_name(f"{tmp_path.name}_away")
    shard.append(record(0))
    while not shard.path.exists():
        time.sleep(0.01)
    tmp_path.rename(away)
    shard.append(record(1))
    while not shard._writer.has_loss:
        time.sleep(0.01)
    away.rename(tmp_path)
    shard.append({"no kind": "at all"})
    shard._thread.join()

    of_disk, of_fault = capsys.readouterr().err.splitlines()
    assert "records are lost" in of_disk
    assert "a fault of the writer" in of_fault
    assert [one["reason"] for one in lines(shard.path)[-2:]] == ["disk", "fault"]


class Broken(io.StringIO):
    """What a program may have put in place of stderr."""

    def write(self, _):
        raise ValueError("closed")


@pytest.mark.parametrize("stderr", [Broken(), None])
def test_what_cannot_be_told_stops_nothing(shard, tmp_path, monkeypatch, stderr):
    """A stderr that refuses is no reason to write no records."""
    monkeypatch.setattr(sys, "stderr", stderr)
    away = tmp_path.with_name(f"{tmp_path.name}_away")
    tmp_path.rename(away)
    shard.append(record(0))
    while not shard._writer.has_loss:
        time.sleep(0.01)
    away.rename(tmp_path)
    shard.append(record(1))
    shard.close(None)

    assert [one["kind"] for one in lines(shard.path)] == ["header", "gap", "call_begin"]


def refuse(*_):
    raise RuntimeError("can't start new thread")


def test_without_a_thread_nothing_is_taken(tmp_path, monkeypatch):
    """Who appends is told once; what comes later takes no memory, and the end is quiet."""
    stops = []
    shard = Shard(tmp_path, header, lambda: 0, on_stop=lambda: stops.append(True))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        shard.append(record(0))
    for seq in range(1, 50_000):
        shard.append(record(seq))

    assert not shard._waiting
    assert stops == [True]
    shard.close(lambda _: {"kind": "footer"})
    assert not shard.path.exists()


def test_a_thread_that_is_dead_keeps_nobody_waiting(shard, monkeypatch):
    """Whatever ended it, memory is bounded and the program goes on."""
    monkeypatch.setattr(shard, "_run", lambda: None)
    for seq in range(sink._WAIT_AT + 10):
        shard.append(record(seq))

    assert not shard._waiting


def test_short_steps_do_not_wake_the_writer_each(tmp_path, monkeypatch):
    """What is asked for right after it was asked for is left to the next time."""
    woken = []
    monkeypatch.setattr(Wake, "set", lambda _: woken.append(now[0]))
    now = [100.0]
    monkeypatch.setattr("traincheck_instrument.sink.shard.time.monotonic", lambda: now[0])
    shard = Shard(tmp_path, dict, lambda: 0)

    for after in (0.0, 0.01, 0.04, 0.06, 0.12):
        now[0] = 100.0 + after
        shard.flush()

    assert woken == [100.0, 100.06, 100.12]


SIGNALLED = """\
import signal, sys
from pathlib import Path
from traincheck_instrument.sink.shard import Shard

place = {"thread": 0, "step": 0}
shard = Shard(Path(sys.argv[1]), lambda: {"kind": "header", "role": "main"}, lambda: 0)
handled = 0
def handle(*_):
    global handled
    handled += 1
    shard.append({"kind": "stage", **place, "seq": -handled, "stage": "checkpointing"})
    shard.flush()
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
seq = 0
while handled < 5000:
    shard.append({"kind": "call_begin", **place, "seq": seq})
    shard.flush()
    seq += 1
signal.setitimer(signal.ITIMER_REAL, 0)
shard.close(None)
print(handled, seq)
"""


def test_a_signal_handler_may_append_at_any_moment(tmp_path):
    """Also in the middle of an append, or of the opening of the file: nobody waits for itself."""
    command = [sys.executable, "-c", SIGNALLED, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, check=True, timeout=120)
    handled, seq = map(int, ended.stdout.split())
    (path,) = tmp_path.iterdir()

    first, *records = lines(path)
    assert first["kind"] == "header"
    assert sorted(one["seq"] for one in records) == [*range(-handled, seq)]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_process_writes_its_own_file(shard):
    """Under its own number, with its own header, and without the records of its parent."""
    shard.append(record(0))
    child = os.fork()
    if not child:
        shard.after_fork()
        shard.append(record(7))
        shard.close(None)
        os._exit(0)
    os.waitpid(child, 0)
    shard.close(None)

    assert [one.get("seq") for one in lines(shard.path)] == [None, 0]
    own = shard.path.with_name(f"trace_r0_p{child}.json")
    assert [one.get("seq") for one in lines(own)] == [None, 7]
