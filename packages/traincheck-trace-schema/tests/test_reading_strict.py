"""Strict reading: the first line that is not as the format says is an error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import dumps, loads
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading import Run, StreamItem, open_run

if TYPE_CHECKING:
    from conftest import TraceBuilder

GOLDEN = Path(__file__).parent / "golden" / "1.0" / "trace_r0_p4242.json"


def _records(run: Run) -> list[dict[str, Any]]:
    return [item.record for item in run.stream() if isinstance(item, StreamItem)]


def _with_line(trace: TraceBuilder, line: str, **header: Any) -> Path:
    path = trace.shard(*trace.steps(0, 1), **header)
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:], ""]), "utf-8")
    return path


_STEP = '"kind":"step","thread":1,"seq":7,"step":0'


@pytest.mark.parametrize(
    ("line", "why", "is_read_otherwise"),
    [
        (f'{{{_STEP},"sampled":true,"sampled":true}}', "has the key 'sampled' twice", True),
        (f'{{{_STEP},"sampled":true,"x":{{"a":1,"b":2,"a":3}}}}', "has the key 'a' twice", True),
        (f'{{{_STEP},"sampled":true,"x":NaN}}', "has the token NaN", True),
        (f'{{{_STEP},"sampled":true,"x":-Infinity}}', "has the token -Infinity", True),
        (f'{{{_STEP},"sampled":true,"x":1e400}}', "has the number 1e400", True),
        (f'{{{_STEP},"sampled":true,"x":01}}', "is no JSON", True),
        (f"{{{_STEP}}}", "field 'sampled' is missing", True),
        (f'{{{_STEP},"sampled":1}}', "field 'sampled' must be true or false", True),
        (f'{{"kind":"mood",{_STEP[14:]}}}', "field 'kind' must be one of", True),
        (f'{{{_STEP},"sampled":true', "is no JSON", False),
        ("", "is no JSON", False),
        ("[]", "is no record: '[]'", False),
    ],
)
def test_the_first_bad_line_is_refused(
    trace: TraceBuilder, line: str, why: str, *, is_read_otherwise: bool
) -> None:
    """The error names file, line and reason; without `strict` it is read as far as it can be."""
    path = _with_line(trace, line)

    with pytest.raises(TraceError) as caught:
        _records(open_run([path], strict=True))
    records = _records(open_run([path]))

    assert str(caught.value).startswith(f"{path}:3: {why}"), caught.value
    assert len(records) == 4 + is_read_otherwise


def test_what_is_right_is_read_as_always(tmp_path: Path) -> None:
    """Each kind of record, in the spelling of any producer."""
    golden = tmp_path / "trace_r0.json"
    golden.write_bytes(GOLDEN.read_bytes())
    spaced = tmp_path / "trace_r1.json"
    spaced.write_text(GOLDEN.read_text("utf-8").replace('":', '" : '), "utf-8")

    assert _records(open_run([golden], strict=True)) == _records(open_run([golden]))
    assert _records(open_run([spaced], strict=True)) == _records(open_run([golden]))


def test_a_cut_last_line_is_nothing_to_refuse(trace: TraceBuilder) -> None:
    """A program may be killed at any time."""
    path = trace.write("trace_r0.json", [trace.header(), *trace.steps(0, 1)])
    path.write_bytes(path.read_bytes()[:-10])

    run = open_run([path], strict=True)

    assert len(_records(run)) == 2
    assert run.notes() == (f"{path}:3: the last line is cut and was left out",)


def test_a_newer_minor_version_may_have_more(trace: TraceBuilder) -> None:
    """Its fields and kinds are no faults; those that are known are held to their class."""
    path = _with_line(trace, f'{{"kind":"mood",{_STEP[14:]}}}', version="1.7", future=[1])

    assert len(_records(open_run([path], strict=True))) == 5

    _with_line(trace, f"{{{_STEP}}}", version="1.7")
    with pytest.raises(TraceError, match=":3: field 'sampled' is missing"):
        _records(open_run([path], strict=True))


def test_the_header_is_read_strictly_too(trace: TraceBuilder) -> None:
    """A key that stands in it twice might mean either."""
    path = trace.shard()
    path.write_text(path.read_text().replace('"rank":0', '"rank":7,"rank":0', 1))

    with pytest.raises(TraceError, match=r"trace_r0.json:1: has the key 'rank' twice"):
        open_run([path], strict=True)
    assert open_run([path]).shards[0].header.rank == 0


def test_damaged_compressed_data_is_refused(trace: TraceBuilder) -> None:
    """What follows the damage is lost, which strict reading does not pass over."""
    path = trace.shard(*trace.steps(*range(2000)), name="trace_r0.json.gz")
    content = bytearray(path.read_bytes())
    content[-8] ^= 1  # of the checksum
    path.write_bytes(content)

    with pytest.raises(TraceError, match=r"trace_r0.json.gz: is no gzip from here on"):
        _records(open_run([path], strict=True))


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pairs=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=4),
    is_spaced=st.booleans(),
)
def test_keys_are_found_twice_if_they_are(
    trace: TraceBuilder, pairs: list[tuple[str, int]], *, is_spaced: bool
) -> None:
    """However an object is spelled: it is refused just if one of its keys comes again."""
    colon = ": " if is_spaced else ":"
    extra = ",".join(f'"{key}"{colon}{value}' for key, value in pairs)
    path = _with_line(trace, f'{{{_STEP},"sampled":true,"x":{{{extra}}}}}')

    is_twice = len({key for key, _ in pairs}) < len(pairs)
    try:
        records = _records(open_run([path], strict=True))
    except TraceError as error:
        assert is_twice, error  # noqa: PT017  both ways out are fine
    else:
        assert not is_twice
        assert records[2] == loads(dumps({**records[2], "x": dict(pairs)}))
