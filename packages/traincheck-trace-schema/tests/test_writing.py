from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_trace_schema.codec import loads, structure_record
from traincheck_trace_schema.errors import ConfigError, TraceError
from traincheck_trace_schema.reading import StreamItem, open_run
from traincheck_trace_schema.writing import write_shard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import TraceBuilder


def _records(trace: TraceBuilder) -> list[dict[str, Any]]:
    return [trace.header(), *trace.steps(0, 1), trace.footer()]


@pytest.mark.parametrize("name", ["trace_r0.json", "trace_r0.json.gz"])
def test_what_is_written_is_read(trace: TraceBuilder, name: str) -> None:
    """A shard holds the records as they were given, plain or compressed."""
    records = _records(trace)

    write_shard(trace.folder / name, iter(records))

    stream = open_run([trace.folder]).stream()
    assert [item.record for item in stream if isinstance(item, StreamItem)] == records


def test_objects_are_written_too(trace: TraceBuilder) -> None:
    """Records of the classes become the lines that they were read from."""
    records = _records(trace)

    write_shard(trace.folder / "trace_r0.json", map(structure_record, records))

    lines = (trace.folder / "trace_r0.json").read_text().splitlines()
    assert [structure_record(loads(line)) for line in lines] == [*map(structure_record, records)]


def test_the_same_records_give_the_same_file(trace: TraceBuilder) -> None:
    """A compressed shard holds neither its name nor the time."""
    for name in ("a.gz", "b.gz"):
        write_shard(trace.folder / name, _records(trace))

    first, second = ((trace.folder / name).read_bytes() for name in ("a.gz", "b.gz"))
    assert first == second
    assert gzip.decompress(first).count(b"\n") == 4


@pytest.mark.parametrize(
    ("value", "reason"),
    [(float("nan"), "a number is not finite"), (object(), "is not JSON serializable")],
)
def test_what_json_lacks_is_refused_and_nothing_is_left(
    trace: TraceBuilder, value: object, reason: str
) -> None:
    """The message names the record; a file that was there stays."""
    path = trace.folder / "trace_r0.json"
    path.write_text("old")

    with pytest.raises(TraceError, match=reason) as caught:
        write_shard(path, [trace.header(), {"kind": "stage", "x": value}], overwrite=True)

    assert str(caught.value).startswith(f"{path}:2: cannot be written")
    assert [each.name for each in trace.folder.iterdir()] == ["trace_r0.json"]
    assert path.read_text() == "old"


def test_records_are_written_as_they_come(tmp_path: Path) -> None:
    """Nothing waits for the last record: a shard may be larger than memory."""
    path = tmp_path / "trace_r0.json"
    sizes = []

    def records() -> Iterator[dict[str, Any]]:
        for number in range(50_000):
            yield {"kind": "stage", "seq": number}
            if number % 10_000 == 0:
                sizes.extend(each.stat().st_size for each in tmp_path.iterdir())

    write_shard(path, records())

    assert sizes == sorted(set(sizes))
    assert sizes[-1] > 0


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The message says which file could not be written."""
    with pytest.raises(ConfigError, match=r"trace_r0\.json: cannot be written: No such file"):
        write_shard(tmp_path / "none" / "trace_r0.json", [])


def test_a_file_that_is_there_is_kept_unless_told_otherwise(trace: TraceBuilder) -> None:
    """Two processes that chose one name would else leave one shard."""
    path = trace.folder / "trace_r0.json"
    path.write_text("old")

    with pytest.raises(ConfigError, match=r"trace_r0\.json: is there already; remove it"):
        write_shard(path, _records(trace))

    assert path.read_text() == "old"
    write_shard(path, _records(trace), overwrite=True)
    assert path.read_text().count("\n") == 4
