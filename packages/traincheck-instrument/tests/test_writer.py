"""What is on disk when the disk, the folder or the file are not as they should be."""

from __future__ import annotations

import gzip
import os
import pwd
import resource
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from traincheck_instrument.sink.file import TraceFile
from traincheck_instrument.sink.limit import SizeLimit
from traincheck_instrument.sink.writer import Writer
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.validation import validate

CLOCK = {"wall_ns": 1, "monotonic_ns": 1}
HEADER = {
    "kind": "header",
    "schema": "traincheck.trace",
    "version": "1.0",
    "run_id": "r",
    "host": "h",
    "pid": 1,
    "role": "main",
    "rank": 0,
    "local_rank": 0,
    "world_size": 1,
    "clock": CLOCK,
    "recording": {"mode": "full"},
}


def at(seq, step=0):
    return {"thread": 3, "seq": seq, "step": step}


def call(seq, step=0, size=0):
    args = {"text": "x" * size}
    return {"kind": "call_begin", **at(seq, step), "id": seq, "function": "f", "args": args}


def function(seq, name="f"):
    return {"kind": "function", **at(seq), "name": name}


def source(seq, number=0):
    return {"kind": "source", **at(seq), "id": number, "file": "a.py", "line": 1, "function": "g"}


def stage(seq, name):
    return {"kind": "stage", **at(seq), "stage": name}


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def writer(tmp_path, request):
    """A writer to a folder of its own."""
    (tmp_path / "out").mkdir()
    return Writer(TraceFile(tmp_path / "out", "trace_r0_p1", request.param))


def written(writer):
    """Return the records in the file, each of which is valid."""
    content = writer.file.path.read_bytes()
    text = gzip.decompress(content) if writer.file.compresses else content
    assert text.endswith(b"\n")
    records = [*map(loads, text.splitlines())]
    for record in records:
        validate("trace", record)
    return records


def footer(counts):
    return {"kind": "footer", "records": dict(counts)}


def outline(records):
    """Return kind and seq of records: what was told, and in which order."""
    return [(record["kind"], record.get("seq")) for record in records]


@contextmanager
def full_disk(writer, room=20):
    """Let files grow by a few bytes only."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (writer.file.size + room, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_full_disk_leaves_whole_lines_and_then_a_gap(writer, size):
    """Part of a batch may have been written: it is cut off, and the gap says how many are gone."""
    writer.write([HEADER, call(0)])
    with full_disk(writer):
        writer.write([call(1, step=1, size=size), call(2, step=2, size=size)])
        assert outline(written(writer)) == [("header", None), ("call_begin", 0)]
    writer.write([call(3, step=3)])

    gap, kept = written(writer)[2:]

    assert gap == {"kind": "gap", **at(2, step=2), "reason": "disk", "count": 2}
    assert kept == call(3, step=3)
    assert writer.gaps == 1


def test_facts_that_were_lost_are_told_before_what_refers_to_them(writer):
    """Functions, lines and the stage are there again, in their order, and no gap counts them."""
    facts = [function(1), source(2), stage(4, "training")]
    writer.write([HEADER, call(0)])
    with full_disk(writer):
        writer.write([*facts[:2], call(3), facts[2]])
        writer.write([call(5)])
    writer.write([call(6)])

    records = written(writer)[2:]

    assert [record for record in records if record["kind"] != "gap"] == [*facts, call(6)]
    assert [record["seq"] for record in records] == [1, 2, 4, 5, 6]
    assert records[3]["count"] == 2


def test_facts_alone_are_told_again_without_a_gap(writer):
    """Nothing is missing then."""
    writer.write([HEADER])
    with full_disk(writer):
        writer.write([function(0)])
    writer.write([call(1)])

    assert outline(written(writer)) == [("header", None), ("function", 0), ("call_begin", 1)]
    assert writer.gaps == 0


def test_a_trace_that_could_not_begin_begins_with_its_header(writer, capsys):
    """No folder: told once, with the file; later the header comes first, and then what is lost."""
    folder = writer.file.folder
    folder.rmdir()
    folder.write_text("a file in its place")
    writer.write([HEADER, function(0), call(1)])
    writer.write([call(2)])
    folder.unlink()
    folder.mkdir()
    writer.write([call(3)])

    kinds = [record["kind"] for record in written(writer)]
    (told,) = capsys.readouterr().err.splitlines()

    assert kinds == ["header", "function", "gap", "call_begin"]
    assert told.startswith(f"traincheck: {writer.file.path} can't be written, records are lost: ")


@pytest.fixture
def own_folder():
    """A folder of a user who may not do anything, as which the test runs: root may write anywhere.

    Not below `tmp_path`, which nobody but its owner may enter.
    """
    with tempfile.TemporaryDirectory() as name:
        user = os.geteuid()
        if user == 0:
            nobody = pwd.getpwnam("nobody").pw_uid
            os.chown(name, nobody, -1)
            os.seteuid(nobody)
        try:
            yield Path(name)
        finally:
            os.seteuid(user)


@pytest.mark.parametrize("compresses", [False, True], ids=["plain", "gzip"])
def test_a_folder_that_may_not_be_written_stops_nothing(own_folder, compresses, capsys):
    """Told once; when it may be written again, the trace goes on."""
    writer = Writer(TraceFile(own_folder, "trace_r0_p1", compresses))
    writer.file.folder.chmod(0o500)
    writer.write([HEADER, call(0)])
    writer.write([call(1)])
    writer.file.folder.chmod(0o700)
    writer.write([call(2)])

    assert [record["kind"] for record in written(writer)] == ["header", "gap", "call_begin"]
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_is_moved_away_and_back_gets_the_gap(writer):
    """What was written is still there, and nothing is told twice."""
    folder = writer.file.folder
    writer.write([HEADER, function(0), call(1)])
    folder.rename(folder.with_name("away"))
    writer.write([call(2)])
    folder.with_name("away").rename(folder)
    writer.write([call(3)])

    assert outline(written(writer)) == [
        *(("header", None), ("function", 0), ("call_begin", 1)),
        *(("gap", 2), ("call_begin", 3)),
    ]


@pytest.mark.parametrize("harm", ["deleted", "emptied", "cut"])
def test_a_file_that_lost_content_is_begun_anew(writer, harm):
    """Header and facts come first; the gap counts what the file held before."""
    writer.write([HEADER, function(0), call(1)])
    writer.write([stage(2, "training"), call(3), stage(4, "evaluation")])
    if harm == "deleted":
        writer.file.path.unlink()
    else:
        os.truncate(writer.file.path, 0 if harm == "emptied" else 30)
    writer.write([call(5)])
    writer.end(footer)

    *records, last = written(writer)

    assert outline(records) == [
        *(("header", None), ("function", 0), ("gap", 3), ("stage", 4), ("call_begin", 5)),
    ]
    assert records[2]["count"] == 2
    assert last["records"] == {kind: 1 for kind, _ in outline(records)}


def test_a_refused_write_that_could_not_be_taken_back_is_overwritten(writer):
    """What lies behind the last whole batch is no part of the trace."""
    writer.write([HEADER, call(0)])
    with writer.file.path.open("ab") as file:
        file.write(b'{"kind":"call_beg' + b"x" * 500)
    writer.write([call(1)])

    assert outline(written(writer))[1:] == [("call_begin", 0), ("call_begin", 1)]


def test_a_file_of_an_earlier_process_of_the_same_number_is_left_alone(writer):
    """Process numbers come again; a trace is never appended to another."""
    other = writer.file.path
    other.write_bytes(b"of another process")
    writer.write([HEADER])

    assert other.read_bytes() == b"of another process"
    assert writer.file.path.name.startswith("trace_r0_p1_2.json")
    assert outline(written(writer)) == [("header", None)]


def test_a_record_that_has_no_json_leaves_a_gap_where_it_was(writer):
    """Others of its batch are written; the counts say what is in the file."""
    writer.write([HEADER, call(0), {**call(1), "args": {"x": float("nan")}}, call(2)])

    records = written(writer)

    assert outline(records)[1:] == [("call_begin", 0), ("gap", 1), ("call_begin", 2)]
    assert (records[2]["reason"], records[2]["count"]) == ("encoding", 1)
    assert "call_begin could not be written" in records[2]["detail"]
    assert writer.counts == {"header": 1, "call_begin": 2, "gap": 1}
    assert writer.gaps == 1


@pytest.mark.parametrize("recovers", [True, False])
def test_a_loss_at_the_end_is_told_before_the_footer(writer, recovers):
    """A trace that can't tell what it lost gets no footer."""
    writer.write([HEADER])
    with full_disk(writer):
        writer.write([call(0)])
        if not recovers:
            writer.end(footer)
    if recovers:
        writer.end(footer)

    kinds = [record["kind"] for record in written(writer)]

    assert kinds == (["header", "gap", "footer"] if recovers else ["header"])


def test_a_file_that_is_gone_at_the_end_is_begun_anew(writer):
    """The footer counts what is there, and a gap what was."""
    writer.write([HEADER, call(0)])
    writer.file.path.unlink()
    writer.end(footer)

    assert [record["kind"] for record in written(writer)] == ["header", "gap", "footer"]


def test_nothing_is_told_again_without_a_loss(writer):
    """Neither a gap nor a fact comes twice, whatever is asked for."""
    writer.write([HEADER, function(0), call(1)])
    writer.write(())
    writer.end(footer)

    assert outline(written(writer))[:3] == [("header", None), ("function", 0), ("call_begin", 1)]
    assert len(written(writer)) == 4


def test_gaps_of_the_program_itself_are_no_losses(writer):
    """Variables are told again after a loss of the sink, not after each pause in recording."""
    paused = {"kind": "gap", **at(1), "reason": "sampling"}
    writer.write([HEADER, call(0), paused])
    assert writer.gaps == 0
    with full_disk(writer):
        writer.write([call(2)])
    writer.write([{**paused, "seq": 3}])

    assert writer.gaps == 1


@pytest.fixture
def fill_folder(writer):
    """Limit the traces of the folder; return what makes another trace take all that is left."""
    limit, folder = 50_000, writer.file.folder
    writer.limit = SizeLimit(folder, limit)
    (folder / "larger").write_bytes(bytes(limit))
    (folder / "trace_r1_p2.json").write_bytes(bytes(limit * 4 // 5))
    return lambda: (folder / "larger").rename(folder / "trace_r1_p2.json")


def test_the_end_of_a_full_trace_is_owed_until_it_is_on_disk(writer, fill_folder, capsys):
    """A disk that is full when the limit is reached costs no gap.

    Neither that of the limit, nor that of what the disk took; before them no footer is written.
    """
    writer.write([HEADER, call(0)])
    with full_disk(writer):
        writer.write([call(1), call(2)])
        fill_folder()
        writer.write([call(seq) for seq in range(3, 100)])
        assert writer.has_ended
        assert writer.has_loss
        writer.end(footer)
        assert [one["kind"] for one in written(writer)] == ["header", "call_begin"]
    writer.end(footer)

    *_, of_disk, of_limit, last = written(writer)
    assert (of_disk["reason"], of_disk["seq"], of_disk["count"]) == ("disk", 2, 2)
    assert (of_limit["reason"], of_limit["seq"]) == ("limit", 4)
    assert last["records"] == {"header": 1, "call_begin": 1, "gap": 2}
    assert not writer.has_loss
    assert capsys.readouterr().err.count("\n") == 2


def test_a_full_trace_that_is_deleted_says_again_why_it_ends(writer, fill_folder):
    """What comes in its place is small, and has a header; there is no footer without it."""
    writer.write([HEADER, function(0), call(1)])
    fill_folder()
    writer.write([call(seq) for seq in range(2, 50)])
    assert writer.has_ended
    writer.file.path.unlink()
    (writer.file.folder / "trace_r1_p2.json").unlink()
    writer.end(footer)

    kinds = [one["kind"] for one in written(writer)]
    assert kinds == ["header", "function", "gap", "gap", "footer"]


@pytest.mark.parametrize("writer", [True], indirect=True, ids=["gzip"])
def test_each_batch_of_a_compressed_trace_can_be_read_without_the_next(writer):
    """Whatever ends the process, what was written before the last batch is whole."""
    writer.write([HEADER, call(0)])
    size = writer.file.size
    writer.write([call(1)])
    content = writer.file.path.read_bytes()

    assert gzip.decompress(content[:size]).count(b"\n") == 2
    assert gzip.decompress(content).count(b"\n") == 3
