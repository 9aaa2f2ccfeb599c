"""The way of records from the threads of the program to the file."""

import os
import threading

import pytest

from traincheck_instrument.sink import shard as sink
from traincheck_instrument.sink.shard import Shard, ShardOptions
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


def test_a_fault_of_the_writer_ends_the_trace_and_not_the_program(shard, capsys):
    """It is told; a trace that stops has no footer."""
    shard.append({"no kind": "at all"})
    shard._thread.join()
    shard.append(record(0))
    shard.close(lambda _: {"kind": "footer"})

    assert "a fault of the writer: KeyError" in capsys.readouterr().err
    assert not shard.path.exists()


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
