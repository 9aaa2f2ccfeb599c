"""Long traces, grown from a real one: the steps after the first again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ujson

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def grow(trace: Path, folder: Path, count: int) -> Path:
    """Write a trace of so many records: the steps after the first again and again."""
    (shard,) = trace.glob("trace_*.json")
    records = [ujson.loads(line) for line in shard.read_bytes().splitlines()]
    folder.mkdir()
    with (folder / "trace_r0_p1.json").open("wb") as file:
        for record in _repeated(records, count):
            file.write(ujson.dumps(record, escape_forward_slashes=False).encode() + b"\n")
    return folder


def _repeated(records: Sequence[dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    """Yield what comes before step 1, the steps up to the last in laps, and the footer."""
    begins = {one["step"]: at for at, one in enumerate(records) if one["kind"] == "step"}
    last = max(begins)
    head, lap = records[: begins[1]], records[begins[1] : begins[last]]
    ids = 1 + max(one["id"] for one in records if one["kind"] == "call_begin")
    yield from head
    for number in range(count - len(head) - 1):
        laps, at = divmod(number, len(lap))
        yield _moved(lap[at], laps * len(lap), laps * (last - 1), laps * ids)
    yield records[-1]


def _moved(record: dict[str, Any], records: int, steps: int, ids: int) -> dict[str, Any]:
    moved = {**record, "seq": record["seq"] + records, "step": record["step"] + steps}
    if record["kind"].startswith("call_"):
        moved["id"] += ids
    for name in ("parent", "call"):
        if record.get(name) is not None:
            moved[name] += ids
    if record.get("between"):
        moved["between"] = [seq + records for seq in record["between"]]
    return moved
