"""Lines of files that are compressed, hostile or very long."""

from __future__ import annotations

import gzip
import os
import socket
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import lines as module
from traincheck_trace_schema.reading.lines import MAX_LINE, LineReader

_MEGABYTE = 2**20


def _read(path: Path) -> tuple[list[bytes | None], LineReader]:
    reader = LineReader(path)
    lines: list[bytes | None] = []
    while (piece := reader.read()) is not None:
        lines += piece
    return lines, reader


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.binary(max_size=400),
    cuts=st.lists(st.integers(0, 400), max_size=3),
    padding=st.integers(0, 3),
    chunk=st.integers(1, 50),
    fed=st.integers(1, 50),
    form=st.sampled_from(["plain", "gzip"]),
)
def test_any_text_is_read_line_by_line(  # noqa: PLR0913  drawn values
    tmp_path: Path, *, text: bytes, cuts: list[int], padding: int, chunk: int, fed: int, form: str
) -> None:
    """Whatever the pieces, the members and the padding between them: the lines are those of it."""
    text = text.replace(b"\x1f", b"x") if form == "plain" else text
    ends = [*sorted(cuts), len(text)]
    members = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    content = b"".join(gzip.compress(each) + bytes(padding) for each in members)
    path = tmp_path / "x"
    path.write_bytes(text if form == "plain" else content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        patch.setattr(module, "_FED", fed)
        lines, reader = _read(path)

    assert [*lines, reader.rest] == text.split(b"\n")
    assert (reader.problem, reader.size) == ("", len(text))
    assert reader.is_amid == bool(reader.rest)


def test_a_line_that_is_too_long_is_none(tmp_path: Path) -> None:
    """Of 100 MB nothing is kept; the lines around it are read; one of just the limit is a line."""
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"b" * (100 * _MEGABYTE) + b"\nc\n" + b"d" * MAX_LINE + b"\ne")

    lines, reader = _read(path)

    assert [line and len(line) for line in lines] == [1, None, 1, MAX_LINE]
    assert reader.rest == b"e"


def test_a_line_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a few kilobytes, compressed, don't keep a reader busy for hours."""
    monkeypatch.setattr(module, "_MAX_SKIPPED", 64 * _MEGABYTE)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b"a\n" + bytes(200 * _MEGABYTE), compresslevel=1))

    lines, reader = _read(path)

    assert lines == [b"a"]
    assert reader.problem == f"has a line of more than {64 * _MEGABYTE} bytes"
    assert reader.size < 70 * _MEGABYTE


@pytest.mark.parametrize("text", [b"\xc3\xa4\n", b"a\\nb\n", b"a\n\\"])
def test_pieces_that_are_not_plain_are_told(tmp_path: Path, text: bytes) -> None:
    """A piece is plain only if no line of it needs a closer look, its beginning included."""
    path = tmp_path / "x"
    path.write_bytes(text[:1] + b"z" * 10 + text[1:] + b"\nplain enough\nplain\n")
    reader = LineReader(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 4)
        seen = []
        while (lines := reader.read()) is not None:
            seen += [(line, reader.is_plain) for line in lines]

    for line, is_plain in seen:
        assert not is_plain or (line.isascii() and b"\\" not in line)
    assert seen[-1] == (b"plain", True)


def test_compressed_data_may_end_at_any_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that zlib makes of it is read, also what it holds back when a piece is full."""
    monkeypatch.setattr(module, "_CHUNK", 16)
    content = gzip.compress(b"".join(b"a" * number + b"\n" for number in range(60)))
    path = tmp_path / "x"
    for length in range(2, len(content)):
        path.write_bytes(content[:length])

        lines, reader = _read(path)

        expected = zlib.decompressobj(31).decompress(content[:length])
        assert [*lines, reader.rest] == expected.split(b"\n")
        assert reader.is_amid


def test_damaged_gzip_ends_there(tmp_path: Path) -> None:
    """What came long before the damage is read, and the reader says why no more is."""
    text = b"".join(b"%d\n" % number for number in range(200_000))
    content = bytearray(gzip.compress(text, compresslevel=1))
    content[len(content) // 2] ^= 0xFF
    path = tmp_path / "x"
    path.write_bytes(content)

    lines, reader = _read(path)

    assert reader.problem.startswith("is no gzip from here on")
    whole = text.split(b"\n")
    assert len(lines) > 10_000
    assert lines[:10_000] == whole[:10_000]


def test_many_empty_members_take_no_time_each(tmp_path: Path) -> None:
    """Members are not copied with all that follows them."""
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b"") * 20_000 + gzip.compress(b"a\n"))

    assert _read(path)[0] == [b"a"]


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_fifo, Path.mkdir, _socket, _loop, _zero])
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: object
) -> None:
    """It is neither waited for nor read."""
    monkeypatch.chdir(tmp_path)  # a path of a socket must be short
    path = tmp_path / "x"
    make(path)  # type: ignore[operator]

    with pytest.raises(TraceError, match=r"/x: cannot be read: \w"):
        LineReader(path).read()
