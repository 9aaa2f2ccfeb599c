"""Shards that were damaged in any way: what is whole in them is read, and nothing else happens."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import loads, structure_record
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import Run, StreamItem, open_run

GOLDEN = Path(__file__).parent / "golden" / "1.0" / "trace_r0_p4242.json"
LINES = GOLDEN.read_bytes().splitlines()
_FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _read(path: Path) -> tuple[list[dict[str, Any]], Run]:
    run = open_run([path])
    return [item.record for item in run.stream() if isinstance(item, StreamItem)], run


def _whole(lines: list[bytes]) -> list[dict[str, Any]]:
    return [loads(line) for line in lines]


@pytest.mark.parametrize("number", range(1, len(LINES)))
def test_half_a_line_costs_itself_only(tmp_path: Path, number: int) -> None:
    """It is told with its number, and every other line is read."""
    half = LINES[number][: len(LINES[number]) // 2]
    path = tmp_path / "trace_r0.json"
    path.write_bytes(b"\n".join([*LINES[:number], half, *LINES[number + 1 :], b""]))

    records, run = _read(path)

    assert records == _whole([*LINES[:number], *LINES[number + 1 :]])
    assert run.notes()[0].startswith(f"{path}:{number + 1}: skipped: is no JSON: ")


def test_lines_that_ran_together_cost_both(tmp_path: Path) -> None:
    """Two processes that write one file may leave such lines."""
    path = tmp_path / "trace_r0.json"
    path.write_bytes(b"\n".join([*LINES[:3], LINES[3] + LINES[4], *LINES[5:], b""]))

    records, run = _read(path)

    assert records == _whole([*LINES[:3], *LINES[5:]])
    assert run.incomplete_because()[-1] == "trace_r0.json: lines that are no records: 1"


@_FUZZ
@given(st.data())
def test_flipped_bits_cost_their_lines_only(tmp_path: Path, data: st.DataObject) -> None:
    """Any bits may flip behind the header: each line without one is read as it is."""
    text = bytearray(b"\n".join([*LINES, b""]))
    start = len(LINES[0]) + 1
    flips = data.draw(st.lists(st.integers(start * 8, len(text) * 8 - 1), min_size=1, max_size=5))
    for bit in flips:
        text[bit // 8] ^= 1 << bit % 8
    path = tmp_path / "trace_r0.json"
    path.write_bytes(text)

    records, run = _read(path)

    lines = text.split(b"\n")
    intact = [loads(line) for line in LINES if line in lines]
    left = iter(records)
    assert all(record in left for record in intact)  # in this order, others between them
    assert run.notes() or len(records) >= len(intact)


@_FUZZ
@given(st.data())
def test_moved_chunks_never_raise(tmp_path: Path, data: st.DataObject) -> None:
    """Parts that are cut out, repeated or put elsewhere give records, or an error that says why."""
    text = b"\n".join([*LINES, b""])
    for _ in range(data.draw(st.integers(1, 3))):
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        at = data.draw(st.integers(0, len(text)))
        chunk, rest = text[start:end], text[:start] + text[end:]
        text = data.draw(
            st.sampled_from([rest, text[:at] + chunk + text[at:], rest[:at] + chunk + rest[at:]])
        )
    path = tmp_path / data.draw(st.sampled_from(["trace_r0.json", "trace_r0.json.gz"]))
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)

    _assert_read_or_refused(path)


@_FUZZ
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_damaged_gzip_never_raises(tmp_path: Path, seed: int, count: int) -> None:
    """Nor does compressed data of which bytes were changed."""
    rng = random.Random(seed)  # noqa: S311  reproducible damage
    content = bytearray(gzip.compress(b"\n".join([*LINES, b""])))
    for _ in range(count):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path = tmp_path / "trace_r0.json.gz"
    path.write_bytes(content)

    _assert_read_or_refused(path)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "x", "\ud800", "\x00", "a" * 100]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tensor", "object", "dtype", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@_FUZZ
@given(
    number=st.integers(0, len(LINES) - 1),
    changes=st.dictionaries(
        st.sampled_from(sorted({key for line in LINES for key in loads(line)})),
        _VALUES,
        min_size=1,
        max_size=3,
    ),
)
def test_fields_of_any_type_never_raise(
    tmp_path: Path, number: int, changes: dict[str, Any]
) -> None:
    """A record of any values is read or told; one that is read can be handled by its kind."""
    lines = list(LINES)
    lines[number] = json.dumps({**loads(lines[number]), **changes}).encode()
    path = tmp_path / "trace_r0.json"
    path.write_bytes(b"\n".join([*lines, b""]))

    _assert_read_or_refused(path)


def _assert_read_or_refused(path: Path) -> None:
    try:
        records, run = _read(path)
    except TraceError as error:
        assert str(path) in str(error)  # noqa: PT017  both ways out are fine
        assert "\n" not in str(error)  # noqa: PT017  as above
        return
    for message in (*run.notes(), *run.incomplete_because()):
        assert "\n" not in message
        message.encode()
    for record in records:
        _handle(record)
    _assert_strict_agrees(path)


def _handle(record: dict[str, Any]) -> None:
    """Do what readers do without asking."""
    kind = record["kind"]
    if kind == "var":
        frozenset(record["names"])
        frozenset(holder["optimizer"] for holder in record.get("held_by", ()))
        {**record.get("attributes", {})}
    elif kind == "call_begin":
        record["function"].split(".")
        {**(record.get("args") or {}), **record.get("ctx", {})}
    elif kind == "observe":
        frozenset(record["attributes"])
    elif kind == "function":
        frozenset((record["name"], *record.get("bases", ()), *record.get("aliases", ())))
    str(record).encode()


def _assert_strict_agrees(path: Path) -> None:
    """What passes strictly is the same, and every record of it can be structured."""
    try:
        strict = list(open_run([path], strict=True).stream())
    except TraceError as error:
        assert str(error).startswith(f"{path}:")  # noqa: PT017  both ways out are fine
        return
    assert strict == list(open_run([path]).stream())
    for item in strict:
        if isinstance(item, StreamItem):
            structure_record(item.record)
