"""How fast a long trace is read, and in how much memory, beside the least that it takes.

The limit is a bare loop of `ujson.loads` over the same lines. The trace is that of a real program,
collected once and then repeated: steps, sequence numbers and ids go on rising. All is measured in
turn, several times, and the best of each is taken; memory in a process for each. Of the figures,
`bare` is the limit, `stream` what the checker consumes, `strict` the same with `--strict`,
`structured` attrs objects, `valid` parsing and the test against the JSON Schema, `validate` what
`traincheck-schema validate` does. Run it with
`hatch run bench reading`, or `python tests/bench/reading.py --records 1000000`.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ujson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PROGRAM = Path(__file__).parents[1] / "workloads" / "digits_cnn.py"
SHORT = 100_000  # records of the trace that memory is compared with
MOST_MEGABYTES = 200
FLAT = 1.1  # how much more memory a trace of ten times the length may take
ROUNDS = 3


def bare(path: Path) -> int:
    """Read the lines with nothing but the parser."""
    count = 0
    with path.open("rb") as file:
        for line in file:
            ujson.loads(line)
            count += 1
    return count


def stream(path: Path) -> int:
    """Read the stream that the checker consumes."""
    return sum(1 for _ in _records(path))


def strict(path: Path) -> int:
    """Read it strictly."""
    return sum(1 for _ in _records(path, strict=True))


def structured(path: Path) -> int:
    """Make the attrs object of each record."""
    from traincheck_trace_schema.codec import structure_record  # noqa: PLC0415  own process

    return sum(structure_record(record) is not None for record in _records(path))


def valid(path: Path) -> int:
    """Hold each record, once parsed, against the JSON Schema; parsing is part of the time."""
    from traincheck_trace_schema.validation.schema import validity_of  # noqa: PLC0415  own process

    is_valid = validity_of("trace")
    with path.open("rb") as file:
        return sum(is_valid(ujson.loads(line)) for line in file)


def validate(path: Path) -> int:
    """Validate the file as `traincheck-schema validate` does, line by line."""
    from traincheck_trace_schema.validation import FileCheck  # noqa: PLC0415  own process

    check = FileCheck(path)
    list(check.problems())
    return check.records


READERS: Mapping[str, Callable[[Path], int]] = {
    each.__name__: each for each in (bare, stream, strict, structured, valid, validate)
}


def _records(path: Path, *, strict: bool = False) -> Iterator[dict[str, Any]]:
    from traincheck_trace_schema.reading import StreamItem, open_run  # noqa: PLC0415  own process

    for item in open_run([path], strict=strict).stream():
        if isinstance(item, StreamItem):
            yield item.record


def collect(folder: Path) -> list[bytes]:
    """Run a small program under the recorder; return the lines of its trace."""
    command = Path(sysconfig.get_path("scripts")) / "traincheck-collect"
    subprocess.run(
        [command, "--pyscript", PROGRAM, "--models-to-track", "model", "--output-dir", folder],
        check=True,
        capture_output=True,
        cwd=folder.parent,
    )
    (shard,) = folder.glob("trace_*.json")
    return shard.read_bytes().splitlines()


def write(path: Path, lines: list[bytes], count: int) -> None:
    """Write a trace of so many records: the header, the others again and again, a footer."""
    *told, footer = lines
    headers = [line for line in told if ujson.loads(line)["kind"] == "header"]
    header = headers[-1]  # it is told again when more is known
    others = [line for line in told if line not in headers]
    steps = max(ujson.loads(line)["step"] for line in others) + 1
    with path.open("wb") as file:
        file.write(header + b"\n")
        for number in range(count - 2):
            lap, at = divmod(number, len(others))
            moved = _moved(ujson.loads(others[at]), lap * len(others), lap * steps)
            file.write(ujson.dumps(moved, escape_forward_slashes=False).encode() + b"\n")
        file.write(footer + b"\n")


def _moved(record: dict[str, Any], by: int, steps: int) -> dict[str, Any]:
    moved = {**record, "seq": record["seq"] + by, "step": record["step"] + steps}
    if record["kind"].startswith("call_"):
        moved["id"] += by
    for name in ("parent", "call"):
        if record.get(name) is not None:
            moved[name] += by
    if record.get("between"):
        moved["between"] = [seq + by for seq in record["between"]]
    return moved


def megabytes(reader: str, path: Path) -> float:
    """Return how much memory a process takes that reads a trace."""
    result = subprocess.run(
        [sys.executable, __file__, "--memory", reader, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(result.stdout)


def seconds(path: Path) -> dict[str, float]:
    """Return the best time of each reader, of the processor: others may be busy beside us."""
    best = dict.fromkeys(READERS, float("inf"))
    for _ in range(ROUNDS):
        for name, read in READERS.items():
            began = time.process_time()
            read(path)
            best[name] = min(best[name], time.process_time() - began)
    return best


def report(what: str, figure: str, ratio: str = "", goal: str = "", *, is_met: bool = True) -> None:
    """Print a line of the table."""
    verdict = f"{goal}: {'met' if is_met else 'NOT met'}" if goal else ""
    print(f"{what:<20} {figure:>18} {ratio:>18}   {verdict}".rstrip(), flush=True)  # noqa: T201


def report_speed(path: Path, count: int) -> None:
    """Print how fast each reader is, beside the bare loop."""
    best = seconds(path)
    goals = {"stream": 0.5, "structured": 0.15}
    for name, took in best.items():
        rate, share = count / took, best["bare"] / took
        goal, is_met = "", True
        if name in goals:
            goal, is_met = f"at least {goals[name]:.0%}", share >= goals[name]
        elif name == "valid":
            goal, is_met = "at least 100,000 records/s", rate >= 100_000
        report(name, f"{rate:,.0f} records/s", f"{share:.0%} of bare", goal, is_met=is_met)


def report_memory(path: Path, short: Path) -> None:
    """Print how much memory reading takes, of a trace and of a shorter one."""
    for name in ("stream", "strict", "structured"):
        most, least = megabytes(name, path), megabytes(name, short)
        is_met = most < MOST_MEGABYTES and most < FLAT * least
        goal = f"less than {MOST_MEGABYTES} MB, and flat"
        report(
            f"memory of {name}", f"{most:,.0f} MB", f"{least:,.0f} MB of short", goal, is_met=is_met
        )


def main() -> int:
    """Measure and print; the exit code is 0 whether or not the goals are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000, help="length of the trace")
    parser.add_argument("--memory", nargs=2, metavar=("READER", "TRACE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        reader, path = options.memory
        READERS[reader](Path(path))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)  # noqa: T201
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, short = folder / "trace_long.json", folder / "trace_short.json"
        lines = collect(folder / "collected")
        write(path, lines, options.records)
        write(short, lines, min(SHORT, options.records))
        # First: what this process took so far is counted for those that it starts.
        report_memory(path, short)
        report_speed(path, options.records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
