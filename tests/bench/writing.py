"""How fast records go from the recorder's dictionaries to disk, beside the least that it takes.

The limit is `ujson.dumps` and `write` of the same records, one by one, into an open file. Ours is
all that the sink does: the queue, the thread, the lines, the counts, the file. Both are measured
several times in turn, in time of the processor, of all threads; the best of each is taken. Run it
with `python tests/bench/writing.py`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ujson

from traincheck_instrument.sink.shard import Shard, ShardOptions

RECORDS = 100_000
ROUNDS = 5
GOAL = 2.0  # times the limit


def records() -> list[dict[str, Any]]:
    """Make records as full collection makes them: mostly calls, with tensors."""
    made: list[dict[str, Any]] = []
    for seq in range(RECORDS // 2):
        place = {"thread": 0, "seq": 2 * seq, "step": seq // 500}
        tensor = {"tensor": {"shape": [64, 128 + seq % 7], "dtype": "float32", "device": "cuda:0"}}
        module = {"type": "torch.nn.Linear", "attributes": {"training": True}}
        made.append(
            {
                "kind": "call_begin",
                **place,
                "id": seq,
                "function": "torch.nn.Linear.forward",
                "parent": max(seq - 1, 0),
                "src": seq % 90,
                "self": {"object": module},
                "args": {"input": tensor},
                "ctx": {},
                "t_ns": 523_481_500_000 + seq,
            }
        )
        end = {"kind": "call_end", **place, "seq": 2 * seq + 1, "id": seq}
        made.append({**end, "function": "torch.nn.Linear.forward", "result": tensor, "t_ns": seq})
    return made


def write_barely(records: list[dict[str, Any]], folder: Path) -> float:
    """Return the seconds that encoding and writing alone take."""
    began = time.process_time()
    with (folder / "bare.json").open("w") as file:
        for record in records:
            file.write(ujson.dumps(record))
            file.write("\n")
    return time.process_time() - began


def write_by_shard(records: list[dict[str, Any]], folder: Path, options: ShardOptions) -> float:
    """Return the seconds that it takes to have all records on disk, from the first `append` on."""
    shard = Shard(folder, lambda: {"kind": "header"}, lambda: 0, options)
    began = time.process_time()
    for record in records:
        shard.append(record)
    shard.close(lambda counts: {"kind": "footer", "records": dict(counts)})
    taken = time.process_time() - began
    shard.path.unlink()
    return taken


def main() -> int:
    """Measure and print; the exit code is 0 whether or not the goal is met."""
    made = records()
    limits, ours, compressed = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(ROUNDS):
            limits.append(write_barely(made, folder))
            ours.append(write_by_shard(made, folder, ShardOptions()))
            compressed.append(write_by_shard(made, folder, ShardOptions(compresses=True)))
    limit, our, gzip = min(limits), min(ours), min(compressed)
    print(f"limit (ujson.dumps + write): {RECORDS / limit:>10,.0f} records/s")  # noqa: T201
    print(f"the sink:                    {RECORDS / our:>10,.0f} records/s")  # noqa: T201
    print(f"the sink, with gzip:         {RECORDS / gzip:>10,.0f} records/s")  # noqa: T201
    met = "met" if our <= GOAL * limit else "NOT met"
    print(f"ratio: {our / limit:.2f}; goal: at most {GOAL}: {met}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
