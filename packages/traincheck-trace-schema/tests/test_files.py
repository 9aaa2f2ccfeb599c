from __future__ import annotations

import gzip
import os
import threading
from typing import TYPE_CHECKING

import pytest

from traincheck_trace_schema.errors import ConfigError, TraceError
from traincheck_trace_schema.files import (
    read_json,
    read_json_lines,
    write_atomically,
    write_json,
    write_json_lines,
)
from traincheck_trace_schema.records import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """The new content takes the old one's place, and nothing else is left in the folder."""
    path = tmp_path / "x.json"
    path.write_text("old")

    write_atomically(path, "new é\n")

    assert path.read_text("utf-8") == "new é\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    """When writing fails halfway, the old content stays and no temporary file does."""
    path = tmp_path / "x.json"
    path.write_text("old")

    def documents() -> Iterator[object]:
        yield {"a": 1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_json_lines(path, documents())

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The message names the file and the system's reason."""
    with pytest.raises(ConfigError, match=r"x\.json: cannot be written: No such file"):
        write_atomically(tmp_path / "gone" / "x.json", "")


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    """What is no file is not replaced."""
    with pytest.raises(ConfigError, match="cannot be written: Is a directory"):
        write_atomically(tmp_path, "")


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """`-o /dev/stdout` and the like are written to, not replaced by a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()

    write_atomically(path, "through")
    reader.join()

    assert (read, path.is_fifo()) == (["through"], True)


def test_objects_and_plain_values_are_written(tmp_path: Path) -> None:
    """Documents of both forms are written; a file for people is indented."""
    path = tmp_path / "x.json"

    write_json(path, Clock(wall_ns=1, monotonic_ns=2))

    assert path.read_text() == '{\n  "wall_ns": 1,\n  "monotonic_ns": 2\n}\n'
    assert read_json(path, error=TraceError) == {"wall_ns": 1, "monotonic_ns": 2}


def test_lines_are_compressed_if_the_name_says_so(tmp_path: Path) -> None:
    """The same documents give the same file."""
    paths = [tmp_path / name / "x.json.gz" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        write_json_lines(path, [{"a": 1}])

    one, other = (path.read_bytes() for path in paths)
    assert gzip.decompress(one) == b'{"a":1}\n'
    assert one == other
    assert one[4:8] == bytes(4)  # no time of writing


def test_a_document_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """It would take as much memory as it likes: compressed, it is a small file."""
    path = tmp_path / "x.json.gz"
    line = b" " * (2**20 - 1) + b"\n"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"a":')
        for _ in range(257):
            file.write(line)
        file.write(b"1}")

    with pytest.raises(TraceError, match="is longer than 256 MB"):
        read_json(path, error=TraceError)


def test_lines_come_with_their_place(tmp_path: Path) -> None:
    """Empty lines are passed over and counted."""
    path = tmp_path / "x.json"
    write_json_lines(path, [{"a": 1}, {"b": 2}])
    path.write_text(path.read_text().replace("\n", "\n\n"))

    lines = list(read_json_lines(path, error=TraceError))

    assert lines == [(f"{path}:1", {"a": 1}), (f"{path}:3", {"b": 2})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}\n{oops\n", r"x:2: is no JSON: .* at column 2, in '{oops'"),
        (b"\xff", "x:1: is no UTF-8 text"),
    ],
)
def test_what_is_no_json_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    """The message names the line and shows it."""
    path = tmp_path / "x"
    path.write_bytes(content)

    with pytest.raises(TraceError, match=message):
        list(read_json_lines(path, error=TraceError))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(TraceError, match="gone: cannot be read: No such file"):
        read_json(tmp_path / "gone", error=TraceError)
