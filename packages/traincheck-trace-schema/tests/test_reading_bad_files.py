"""Files in a trace folder that cannot be read, beside others that can."""

from __future__ import annotations

import gzip
import os
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import Run, StreamItem, open_run, open_runs
from traincheck_trace_schema.reading import shard as shard_module
from traincheck_trace_schema.reading.lines import LineReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import TraceBuilder

_MEGABYTE = 2**20


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 10)


def _poem(path: Path) -> None:
    path.write_text("so much depends\nupon\n")


def _no_gzip(path: Path) -> None:
    path.write_bytes(b"\x1f\x8b" + b"\x00" * 100)


def _long_line(path: Path) -> None:
    path.write_bytes(b'{"kind":"header"' + b" " * (20 * _MEGABYTE))


def _bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(bytes(30 * _MEGABYTE), compresslevel=1))


_Make: TypeAlias = "Callable[[Path], object]"
BAD: list[_Make] = [
    *(_fifo, _socket, _loop, _zero, _dangling, Path.mkdir),
    *(_garbage, _poem, _no_gzip, _long_line, _bomb),
]


def _make(trace: TraceBuilder, make: _Make, name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trace.folder)  # a path of a socket must be short
    path = trace.folder / name
    make(path)
    return path


def _steps(run: Run) -> list[int]:
    records = [item.record for item in run.stream() if isinstance(item, StreamItem)]
    return [record["step"] for record in records if record["kind"] == "step"]


@pytest.mark.parametrize("make", BAD)
def test_one_that_cannot_be_read_leaves_the_others(
    trace: TraceBuilder, make: _Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are read, the note says which was left out and why, the run is not complete."""
    trace.shard(*trace.steps(0, 1))
    bad = _make(trace, make, "trace_x.json", monkeypatch)

    run = open_run([trace.folder])

    assert _steps(run) == [0, 1]
    (note,) = run.notes()
    assert note.startswith(f"{bad}:")
    assert note.endswith("; it was left out")
    assert run.incomplete_because() == ("trace_x.json: cannot be read",)


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("is_named", [True, False])
def test_one_that_is_named_or_alone_is_an_error(
    trace: TraceBuilder, make: _Make, monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    """The error is one line, and names the file."""
    if is_named:
        trace.shard(*trace.steps(0, 1))
    bad = _make(trace, make, "trace_x.json", monkeypatch)

    with pytest.raises(TraceError) as caught:
        open_run([trace.folder, bad] if is_named else [trace.folder])

    assert str(caught.value).startswith(f"{bad}:")
    assert "\n" not in str(caught.value)


def test_strict_reading_refuses_a_folder_with_such_a_file(trace: TraceBuilder) -> None:
    """With `strict`, nothing is left out."""
    trace.shard(*trace.steps(0))
    (trace.folder / "trace_x.json").mkdir()

    with pytest.raises(TraceError, match=r"trace_x.json: cannot be read: it is no regular file"):
        open_run([trace.folder], strict=True)


def test_another_major_version_is_refused_whatever_else_is_there(trace: TraceBuilder) -> None:
    """Half of a trace that needs another reader would be worse than none."""
    trace.shard(*trace.steps(0))
    trace.shard(name="trace_r1.json", rank=1, version="2.0")

    with pytest.raises(TraceError, match=r"trace_r1.json:1: is traincheck.trace version 2.0"):
        open_run([trace.folder])


def test_reasons_are_told_of_the_first_few(trace: TraceBuilder) -> None:
    """If nothing can be read, the error says why, and stays short."""
    for number in range(9):
        _poem(trace.folder / f"trace_{number}.json")

    with pytest.raises(TraceError) as caught:
        open_run([trace.folder])

    assert str(caught.value).count("must be the header") == 3
    assert str(caught.value).endswith("and 6 more")


def test_a_file_is_told_of_to_the_run_of_its_folder(trace: TraceBuilder) -> None:
    """Of two runs, that is the one whose shards lie beside it; or both, if none do."""
    trace.shard(name="a/trace_r0.json", run_id="a")
    trace.shard(name="b/trace_r0.json", run_id="b")
    _poem(trace.folder / "a" / "trace_x.json")
    (trace.folder / "c").mkdir()
    _poem(trace.folder / "c" / "trace_y.json")

    runs = open_runs([trace.folder / name for name in "abc"])

    told = [sorted(each.path.name for each in run.unread) for run in runs]
    assert told == [["trace_x.json", "trace_y.json"], ["trace_y.json"]]


def test_names_that_are_no_text_are_told(trace: TraceBuilder) -> None:
    """A file system may have names in any encoding; messages can still be encoded."""
    trace.shard(*trace.steps(0))
    _poem(trace.folder / os.fsdecode(b"trace_\xff.json"))

    (note,) = _after_reading(open_run([trace.folder])).notes()

    assert note.encode(sys.stderr.encoding, "backslashreplace")


def test_a_shard_that_vanishes_is_given_up(trace: TraceBuilder) -> None:
    """What can't be read in the middle of a stream is told as such; the others go on."""
    trace.shard(*trace.steps(0, 2), rank=0, world_size=2)
    gone = trace.shard(*trace.steps(0, 1), rank=1, world_size=2, name="trace_r1.json")
    run = open_run([trace.folder])
    gone.unlink()

    assert _steps(run) == [0, 2]
    assert run.notes() == (
        f"{gone}: cannot be read: No such file or directory; what follows was left out",
    )
    assert run.incomplete_because() == ("trace_r1.json: was not read to its end",)


def test_a_shard_that_is_replaced_is_given_up(trace: TraceBuilder) -> None:
    """Two halves of different files are no trace."""
    path = trace.shard(*trace.steps(*range(5000)))
    run = open_run([path])
    stream = run.stream()
    next(item for item in stream if isinstance(item, StreamItem) and item.line > 2)
    path.write_bytes(b"")

    list(stream)

    assert run.notes() == (f"{path}: was replaced while it was read; what follows was left out",)


def test_a_shard_without_records_is_given_up(
    trace: TraceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many lines that are none, the rest is not looked at, and that is told."""
    monkeypatch.setattr(shard_module, "_MOST_LINES", 100_000)
    path = trace.shard(*trace.steps(0), name="trace_r0.json.gz")
    bomb = gzip.compress(b"\n" * (20 * _MEGABYTE), compresslevel=1)
    path.write_bytes(path.read_bytes() + bomb)

    run = _after_reading(open_run([path]))

    assert "no record in " in run.notes()[5]
    assert run.notes()[5].endswith("what follows was left out")
    assert run.incomplete_because()[0] == "trace_r0.json.gz: was not read to its end"
    assert 100_000 < run._findings[0].malformed < 200_000


def test_a_shard_of_long_lines_is_given_up(
    trace: TraceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is one of bytes, too."""
    monkeypatch.setattr(shard_module, "_MOST_BYTES", 50 * _MEGABYTE)
    path = trace.shard(*trace.steps(0), name="trace_r0.json.gz")
    line = bytes(17 * _MEGABYTE) + b"\n"
    path.write_bytes(path.read_bytes() + gzip.compress(line * 6, compresslevel=1))

    run = _after_reading(open_run([path]))

    assert run.incomplete_because()[0] == "trace_r0.json.gz: was not read to its end"
    assert run._findings[0].malformed == 2


def test_records_between_what_is_none_are_read(
    trace: TraceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is one of what is in a row."""
    monkeypatch.setattr(shard_module, "_MOST_LINES", 2000)
    step = {"kind": "step", "thread": 1, "seq": 0, "step": 0, "sampled": True}
    bad = {"kind": "step", "padding": "x" * 100}
    trace.write("trace_r0.json", [trace.header(), *([step] + [bad] * 1400) * 10])

    run = open_run([trace.folder])

    assert len(_steps(run)) == 10
    assert Counter(note.partition(": ")[2][:7] for note in run.notes())["skipped"] == 5


def test_asking_for_more_is_not_counted(
    trace: TraceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that grows may have nothing new for hours, whatever stood in it last."""
    monkeypatch.setattr(shard_module, "_MOST_LINES", 10)
    path = trace.write("trace_r0.json", [trace.header(), {"no": "kind"}])
    findings = shard_module.Findings(path=path)
    reader = shard_module.ShardReader(LineReader(path), 0, findings)
    assert list(reader.read() or ()) == []

    for _ in range(20):
        assert reader.read() is None

    assert (findings.malformed, findings.given_up) == (1, "")


def test_a_file_of_nothing_is_no_trace(
    trace: TraceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compressed, it may have any number of parts without a line."""
    monkeypatch.setattr(shard_module, "_MOST_PIECES", 100)
    path = trace.folder / "trace_r0.json.gz"
    path.write_bytes(gzip.compress(b"") * 200)

    with pytest.raises(TraceError, match=r"trace_r0.json.gz: has no line in its first 100 pieces"):
        open_run([path])


def _after_reading(run: Run) -> Run:
    for _ in run.stream():
        pass
    return run
