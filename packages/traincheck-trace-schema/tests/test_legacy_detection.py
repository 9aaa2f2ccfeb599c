"""Files of TrainCheck 0.x are told from all others by their first line."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.legacy.testing import OldTrace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Write one file of each kind; return them."""
    trace = OldTrace(tmp_path / "old")
    thread = trace.thread()
    with thread.call("torch.relu"):
        thread.state("w")
        thread.state("w", proxy=True)
    return sorted(trace.write().iterdir())


def test_each_kind_of_file_is_recognised(files: list[Path]) -> None:
    """Calls, variables, and the log that the processes share."""
    assert len(files) == 3
    assert all(map(is_legacy_file, files))


def test_a_compressed_file_is_recognised_also_if_it_is_cut(files: list[Path]) -> None:
    """What can be decompressed of it decides, whatever its name says."""
    content = gzip.compress(files[0].read_bytes(), 0)
    files[0].write_bytes(content[:-9])

    assert is_legacy_file(files[0])


def test_a_compressed_file_that_gives_nothing_is_not_read_to_its_end(files: list[Path]) -> None:
    """It may have millions of empty pieces, each of which takes its time."""
    path = files[0].with_name("trace_x.json")
    record = gzip.compress(files[0].read_bytes())
    path.write_bytes(gzip.compress(b"") * 100 + record)
    assert is_legacy_file(path)

    path.write_bytes(gzip.compress(b"") * 12_000 + record)

    assert not is_legacy_file(path)


@pytest.mark.parametrize("length", [25, 60, -1])
def test_a_first_line_that_is_cut_is_recognised_by_its_beginning(
    files: list[Path], length: int
) -> None:
    """A program may be killed before its first record is whole."""
    line = b'{"func_call_id": "a_1", "thread_id": 1, "process_id": 2, "meta_vars": {"step": 0}}'
    files[0].write_bytes(line[:length])

    assert is_legacy_file(files[0])


def test_a_very_long_first_line_is_not_read_to_its_end(files: list[Path]) -> None:
    """Its beginning is enough, so that memory is bounded."""
    files[0].write_bytes(b'{"var_name": "' + b"w" * 2**20)

    assert is_legacy_file(files[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("trace_API_7_70.log", True),
        ("trace_VAR_7_70.log.gz", True),
        ("proxy_log.json", True),
        ("trace_r0_p7.json", False),
    ],
)
def test_of_an_empty_file_the_name_decides(tmp_path: Path, name: str, *, expected: bool) -> None:
    """0.x makes a file when a thread starts, and may write nothing into it."""
    (tmp_path / name).touch()

    assert is_legacy_file(tmp_path / name) is expected


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"header","schema":"traincheck.trace","version":"1.0"}\n',
        b'{"kind":"gap","type":"state_change","process_id":1}\n',
        b'{"text_description":"a","relation":"R","params":[]}\n',
        b'{"type":"state_change"}\n',
        b'{"type":["state_change"],"process_id":1}\n',
        b"[1]\n",
        b"\xff\xfe\n",
    ],
)
def test_all_else_is_no_such_file(tmp_path: Path, line: bytes) -> None:
    """A trace of 1.0, invariants, other JSON, and what is no JSON."""
    path = tmp_path / "trace_API_7_70.log"
    path.write_bytes(line)

    assert not is_legacy_file(path)


def test_what_can_not_be_read_is_no_such_file(tmp_path: Path) -> None:
    """A FIFO does not make it wait; a folder, a loop of links and nothing at all are no error."""
    fifo, loop = tmp_path / "trace_API_1_1.log", tmp_path / "trace_API_2_2.log"
    os.mkfifo(fifo)
    loop.symlink_to(loop)

    assert not any(map(is_legacy_file, (fifo, loop, tmp_path, tmp_path / "trace_API_3_3.log")))
