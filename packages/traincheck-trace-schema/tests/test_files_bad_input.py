"""Invariants, plans and results that are no such thing: an error of one line, at once."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.errors import ConfigError, InvariantError, TraincheckError
from traincheck_trace_schema.files import read_json, read_json_lines
from traincheck_trace_schema.invariant_file import read_invariants
from traincheck_trace_schema.plan_file import read_plan
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.suppression_file import read_suppressions

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden" / "1.0"
_MEGABYTE = 2**20


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_fifo, Path.mkdir, _loop, _zero])
@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda path: read_invariants([path]), InvariantError),
        (read_plan, ConfigError),
        (read_summary, ConfigError),
        (lambda path: list(read_verdicts(path)), ConfigError),
        (read_suppressions, ConfigError),
    ],
    ids=["invariants", "plan", "summary", "verdicts", "suppressions"],
)
def test_what_is_no_file_is_refused(
    tmp_path: Path,
    make: Callable[[Path], Any],
    read: Callable[[Path], Any],
    error: type[TraincheckError],
) -> None:
    """It is neither waited for nor read; the error is that of the document."""
    path = tmp_path / "x.json"
    make(path)

    with pytest.raises(error, match=r"^/.*/x.json: cannot be read: [^\n]*$"):
        read(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a":1,"a":2}', "has the key 'a' twice in one object"),
        (b'{"a":NaN}', "has the token NaN"),
        (b'{"a":1e999}', "has the number 1e999, which is too large"),
        (b'{"a":"\\ud800"}', "holds half of a surrogate pair"),
        (b'{"a":"\xed\xa0\x80"}', "is no UTF-8 text"),
        (b'{"a":' * 800 + b"0" + b"}" * 800, "is nested more than 200 levels deep"),
        (b"[" * 100_000, "is nested more than 200 levels deep"),
        (b'{"a":' + b"9" * 5000 + b"}", "has a number of 5000 digits"),
    ],
)
def test_ambiguous_json_is_always_refused(tmp_path: Path, text: bytes, why: str) -> None:
    """What two programs would read differently is no document; the line is named."""
    path = tmp_path / "x.json"
    path.write_bytes(b"{}\n" + text + b"\n")

    with pytest.raises(InvariantError) as caught:
        list(read_json_lines(path, error=InvariantError))
    assert str(caught.value).startswith(f"{path}:2: {why}")

    path.write_bytes(text)
    with pytest.raises(ConfigError) as caught_whole:
        read_json(path, error=ConfigError)
    assert str(caught_whole.value).startswith(f"{path}: {why}")


@pytest.mark.parametrize("end", [b"", b"\n{}\n"])
def test_a_line_that_is_too_long_is_refused(tmp_path: Path, end: bytes) -> None:
    """Nothing of it is kept, whether it ends or not."""
    path = tmp_path / "x.json"
    path.write_bytes(b"{}\n" + b" " * (17 * _MEGABYTE) + end)

    with pytest.raises(InvariantError, match=r"x.json:2: is longer than 16 MB$"):
        list(read_json_lines(path, error=InvariantError))
    with pytest.raises(ConfigError, match=r"x.json:2: is longer than 16 MB$"):
        read_json(path, error=ConfigError)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """A small file may unpack to billions of empty lines."""
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b"\n" * (2 * _MEGABYTE), compresslevel=1))

    with pytest.raises(InvariantError, match="has more than 1000000 empty lines"):
        list(read_json_lines(path, error=InvariantError))


def test_compressed_documents_are_read(tmp_path: Path) -> None:
    """As traces are."""
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(b'{"a":\n1}'))

    assert read_json(path, error=ConfigError) == {"a": 1}


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_documents_never_raise_anything_else(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes that were changed, cut out or repeated: a document, or an error that names the file."""
    readers: dict[str, Callable[[Path], Any]] = {
        "invariants.json": lambda path: read_invariants([path]),
        "plan.json": read_plan,
        "violations_summary.json": read_summary,
        "failed.log": lambda path: list(read_verdicts(path)),
        "invariants.suppressed.jsonl": read_suppressions,
    }
    name = data.draw(st.sampled_from(sorted(readers)))
    content = bytearray((GOLDEN / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content) - 1))
        end = min(len(content), start + data.draw(st.integers(1, 40)))
        damage = data.draw(st.binary(max_size=8) | st.just(bytes(content[start:end]) * 2))
        content[start:end] = damage
    path = tmp_path / name
    path.write_bytes(content)

    try:
        readers[name](path)
    except TraincheckError as error:
        assert str(path) in str(error)  # noqa: PT017  both ways out are fine
        assert "\n" not in str(error)  # noqa: PT017  as above
