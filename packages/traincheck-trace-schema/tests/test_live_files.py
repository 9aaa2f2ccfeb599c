"""What may become of the files of a run that is followed."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_trace_schema.reading import LiveRun, StreamItem, open_live, open_run

if TYPE_CHECKING:
    from conftest import Clock, TraceBuilder


def _seqs(live: LiveRun) -> list[Any]:
    """Return the seq, or the kind, of each record that a poll gives."""
    return [
        item.record.get("seq", item.record["kind"])
        for item in live.poll()
        if isinstance(item, StreamItem)
    ]


def _replace(path: Path, content: bytes) -> None:
    """Put another file in the place of one, as rsync does."""
    copy = path.with_name("copy")
    copy.write_bytes(content)
    copy.replace(path)


@pytest.fixture
def path(trace: TraceBuilder) -> Path:
    """A shard with records 0 to 3."""
    return trace.append("trace_r0.json", trace.header(), *trace.steps(0, 0, 1, 2))


@pytest.fixture
def live(path: Path, clock: Clock) -> LiveRun:
    """A run that is followed, of which records 0 to 3 were read."""
    live = open_live([path.parent], clock=clock)
    assert _seqs(live) == ["header", 0, 1, 2, 3]
    return live


def test_a_file_may_be_replaced_by_its_grown_copy(
    trace: TraceBuilder, path: Path, live: LiveRun
) -> None:
    """Nothing is given twice."""
    grown = trace.steps(0, 0, 1, 2, 2, 3)
    other = trace.write("other", [trace.header(), *grown])

    _replace(path, other.read_bytes())

    assert _seqs(live) == [4, 5]
    assert live.notes() == ()


def test_a_compressed_file_may_be_replaced_again_and_again(
    trace: TraceBuilder, clock: Clock
) -> None:
    """The bytes of its grown copy are others from the beginning; its lines are the same."""
    steps = trace.steps(0, 0, 1, 1, 2, 2)
    path = trace.write("trace_r0.json.gz", [trace.header(), *steps[:1]])
    live = open_live([trace.folder], clock=clock)
    assert _seqs(live) == ["header", 0]

    for length, expected in (3, [1, 2]), (3, []), (4, [3]), (6, [4, 5]):
        content = trace.write("other", [trace.header(), *steps[:length]]).read_bytes()
        _replace(path, gzip.compress(content, length))
        assert _seqs(live) == expected

    assert live.notes() == ()


def test_a_file_that_ended_may_be_replaced_by_its_copy(trace: TraceBuilder, clock: Clock) -> None:
    """It is read again at the end, and says nothing new, the footer included."""
    path = trace.shard(*trace.steps(0, 1), name="trace_r0.json.gz")
    live = open_live([trace.folder], clock=clock)
    assert _seqs(live) == ["header", 0, 1, "footer"]

    _replace(path, gzip.compress(gzip.decompress(path.read_bytes()), 1))

    assert list(live.finish()) == []
    assert (live.notes(), live.incomplete_because()) == ((), ())


def test_half_a_line_may_be_cut_back(trace: TraceBuilder, path: Path, live: LiveRun) -> None:
    """A writer that met a full disk leaves whole lines; reading goes on behind the last."""
    size = path.stat().st_size
    with path.open("a") as file:
        file.write('{"kind": "step", "thread": 1, "se')
    assert _seqs(live) == []

    os.truncate(path, size)
    assert _seqs(live) == []
    trace.append("trace_r0.json", *trace.steps(0, 0, 1, 2, 3)[4:])

    assert _seqs(live) == [4]
    assert live.notes() == ()


def test_what_was_cut_back_may_be_written_again(
    trace: TraceBuilder, path: Path, live: LiveRun
) -> None:
    """Until the file is longer than it was, it says nothing new."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    assert _seqs(live) == []

    trace.append(path.name, *trace.steps(0, 0, 1, 2, 2, 3)[2:])

    assert _seqs(live) == [4, 5]
    assert live.notes() == ()


def test_a_footer_is_read_whatever_was_cut_back(
    trace: TraceBuilder, path: Path, live: LiveRun
) -> None:
    """It has no seq, and there is one."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    trace.append(path.name, trace.footer())

    assert _seqs(live) == ["footer"]
    assert live.is_over


def test_a_file_that_stays_cut_back_is_told(path: Path, live: LiveRun) -> None:
    """At the end, what was read and what the file holds are not the same."""
    os.truncate(path, path.stat().st_size // 2)
    assert _seqs(live) == []

    list(live.finish())

    assert live.incomplete_because() == ("trace_r0.json: was not read to its end",)
    assert live.notes()[0].startswith(f"{path}: is shorter than what was read of it")


def test_records_that_took_the_place_of_others_are_given(
    trace: TraceBuilder, path: Path, live: LiveRun
) -> None:
    """A batch that was refused is gone from the file; the next one follows what was before it."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    trace.append("trace_r0.json", *trace.steps(0, 0, 1, 2, 2, 3)[4:])

    assert _seqs(live) == [4, 5]
    (note,) = live.notes()
    assert note.startswith(f"{path}:4: the file was cut back before this line")


def test_a_file_that_is_written_anew_is_waited_for(path: Path, live: LiveRun) -> None:
    """`cp` empties a file before it fills it; half of it says nothing new."""
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        assert _seqs(live) == []

    path.write_bytes(content + b'{"kind": "footer", "records": {}}\n')

    assert _seqs(live) == ["footer"]
    assert live.is_over
    assert live.notes() == ()


def test_another_trace_in_its_place_ends_a_process(
    trace: TraceBuilder, path: Path, live: LiveRun
) -> None:
    """It is told, the process has no footer, and nothing of the other is read."""
    path.write_bytes(b"")
    assert _seqs(live) == []
    trace.append(path.name, trace.header(pid=1), *trace.steps(0, 0, 1, 2, 3), trace.footer())

    assert _seqs(live) == []

    assert live.notes() == (f"{path}: was replaced by another trace; what follows was left out",)
    list(live.finish())
    assert live.incomplete_because() == ("trace_r0.json: was not read to its end",)


def test_a_file_may_be_away_for_a_while(
    trace: TraceBuilder, path: Path, live: LiveRun, clock: Clock
) -> None:
    """It is told after some seconds, once, and tried again."""
    away = path.rename(path.with_name("away"))
    assert _seqs(live) == []
    clock.now += 5
    assert _seqs(live) == []
    assert live.notes() == ()

    for _ in range(3):
        clock.now += 10
        assert _seqs(live) == []
    (note,) = live.notes()
    assert note.startswith(f"{path}: cannot be read: No such file or directory; it is tried again")

    away.rename(path)
    trace.append(path.name, *trace.steps(0, 0, 1, 2, 3)[4:])
    assert _seqs(live) == [4]


def test_a_folder_may_be_away_for_a_while(
    trace: TraceBuilder, path: Path, live: LiveRun, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is in it when it is back is read."""
    away = tmp_path_factory.mktemp("away") / "folder"
    shutil.move(trace.folder, away)
    assert _seqs(live) == []

    shutil.move(away, trace.folder)
    trace.append(path.name, trace.footer())

    assert _seqs(live) == ["footer"]


def test_a_file_that_is_away_at_the_end_was_not_read_to_its_end(path: Path, live: LiveRun) -> None:
    """What it may have said more is missing."""
    path.unlink()

    list(live.finish())

    assert live.incomplete_because() == ("trace_r0.json: was not read to its end",)
    assert "cannot be read: No such file or directory" in live.notes()[0]


def test_a_file_that_was_read_to_its_footer_may_go(
    trace: TraceBuilder, path: Path, live: LiveRun, clock: Clock
) -> None:
    """Nothing is missing then; it is not even looked at any more."""
    trace.append(path.name, trace.footer())
    assert _seqs(live) == ["footer"]
    path.unlink()

    for _ in range(3):
        clock.now += 10
        assert _seqs(live) == []
    list(live.finish())

    assert (live.notes(), live.incomplete_because()) == ((), ())


def test_a_file_that_comes_and_goes_is_not_told(path: Path, live: LiveRun, clock: Clock) -> None:
    """What counts is how long it is away at a time."""
    away = path.with_name("away")
    for _ in range(5):
        path.rename(away)
        list(live.poll())
        clock.now += 6
        list(live.poll())
        away.rename(path)
        list(live.poll())

    assert live.notes() == ()


def test_a_network_file_system_may_tell_an_old_size(
    trace: TraceBuilder, path: Path, live: LiveRun, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is opened again now and then, which brings its attributes up to date."""
    old = path.stat()
    trace.append(path.name, trace.footer())
    monkeypatch.setattr(type(path), "stat", lambda *_, **__: old)
    assert _seqs(live) == []

    clock.now += 3

    assert _seqs(live) == ["footer"]


def test_nothing_is_opened_when_nothing_happened(
    path: Path, live: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle poll is a look into the folder and one at each file, be its header there or not."""
    path.with_name("trace_r1.json").write_text('{"kind": "hea')
    list(live.poll())
    opened: list[Any] = []
    open_file = os.open

    def open_and_count(file: Any, *args: Any) -> int:
        opened.append(file)
        return open_file(file, *args)

    monkeypatch.setattr(os, "open", open_and_count)

    list(live.poll())

    assert opened == []


def test_files_are_open_only_within_a_poll(trace: TraceBuilder, clock: Clock) -> None:
    """There may be thousands of processes that wait for one another."""
    for rank in range(3):
        steps = (number // 1000 for number in range(5000 if rank else 1))
        trace.append(f"trace_r{rank}.json", trace.header(rank, world_size=3), *trace.steps(*steps))
    before = len(list(Path("/dev/fd").iterdir()))
    live = open_live([trace.folder], clock=clock)

    list(live.poll())

    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.parametrize("name", ["trace_fifo.json", "trace_folder.json", "trace_loop.json"])
def test_what_is_no_file_keeps_nobody_waiting(
    trace: TraceBuilder, live: LiveRun, name: str
) -> None:
    """A FIFO, a folder or a loop of links in the trace folder."""
    path = trace.folder / name
    if "fifo" in name:
        os.mkfifo(path)
    elif "folder" in name:
        path.mkdir()
    else:
        path.symlink_to(path)

    assert _seqs(live) == []
    trace.append("trace_r0.json", trace.footer())
    assert _seqs(live) == ["footer"]

    list(live.finish())
    run = open_run([trace.folder])
    list(run.stream())
    assert live.notes() == run.notes() != ()
    assert live.incomplete_because() == run.incomplete_because() != ()


def test_a_link_to_a_shard_is_that_shard(trace: TraceBuilder, path: Path, live: LiveRun) -> None:
    """It is not read twice."""
    (trace.folder / "trace_link.json").symlink_to(path)

    assert _seqs(live) == []
    assert len(live.shards) == 1


def test_a_file_that_was_no_shard_may_become_one(trace: TraceBuilder, clock: Clock) -> None:
    """What was told of it is not told any more."""
    trace.shard(*trace.steps(0), name="trace_r1.json", rank=1, world_size=2)
    path = trace.folder / "trace_r0.json"
    path.write_bytes(b"rubbish\n")
    live = open_live([trace.folder], clock=clock)
    list(live.poll())
    assert "trace_r0.json" in live.notes()[0]

    trace.shard(*trace.steps(0), name="trace_r0.json", rank=0, world_size=2)

    assert list(live.poll())
    assert live.is_over
    assert live.notes() == ()
