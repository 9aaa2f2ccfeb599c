"""How fast invariants are inferred, in how much memory, beside the peer on the same program.

The trace is that of digits_cnn with 30 steps: once as it is, and then with its steps repeated to
four lengths. Each inference is the real command in a process of its own; its CPU time is taken,
start-up and all, because other programs may be busy beside us, and its peak memory. The cost of a
record is the slope of a line through the times at the four lengths, and the exponent that of a
power of the length. The peer, TrainCheck 0.2.0, needs an environment of its own with torch and
scikit-learn; `--peer` names the folder of its commands. It infers from its own trace of the same
run, once, which takes minutes.

Run it with `hatch run bench inference --peer ENV/bin`; the longest trace takes minutes too.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import ujson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROGRAM = Path(__file__).parents[1] / "workloads" / "digits_cnn.py"
STEPS = 30
OURS = Path(sysconfig.get_path("scripts"))
LENGTHS = (50_000, 200_000, 600_000, 2_000_000)
MOST_US = 100
MOST_EXPONENT = 1.1
MOST_MEGABYTES = 1_500
LEAST_FACTOR = 100  # how much faster than the peer
MOST_SHARE = 0.25  # of the peer's memory


@attrs.frozen
class Cost:
    """What a command took."""

    seconds: float  # of the processor
    megabytes: float


def run(argv: Sequence[str | Path], folder: Path, env: Mapping[str, str] | None = None) -> Cost:
    """Run a command and all that it starts, to its end."""
    log = folder / "output.txt"
    with log.open("wb") as output:
        pid = os.posix_spawn(
            argv[0],
            argv,
            {**os.environ, **(env or {})},
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)],
        )
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{argv[0]} failed:\n{log.read_text()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def collect(scripts: Path, folder: Path) -> Path:
    """Collect the trace of the program, in full; return its folder."""
    folder.mkdir()
    program = Path(shutil.copy(PROGRAM, folder))  # the peer writes beside the program
    script = folder / "run.sh"
    script.write_text(f"python {program.name} --steps {STEPS}\n")
    path = os.pathsep.join((str(scripts), os.environ["PATH"]))
    argv: list[str | Path] = [scripts / "traincheck-collect", "--pyscript", program]
    argv += ["--shscript", script, "--models-to-track", "model", "--output-dir", folder / "trace"]
    before = Path.cwd()
    os.chdir(folder)
    try:
        run(argv, folder, {"PATH": path, "PYTHONPATH": ""})
    finally:
        os.chdir(before)
    return folder / "trace"


def infer(scripts: Path, trace: Path, folder: Path) -> tuple[Cost, int]:
    """Infer invariants; return what it took, and how many there are."""
    output = folder / "invariants.json"
    cost = run([scripts / "traincheck-infer", "-f", trace, "-o", output], folder)
    with output.open("rb") as file:
        return cost, sum(1 for _ in file)


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


def report(what: str, figure: str, goal: str = "", *, is_met: bool = True) -> None:
    """Print a line of the table."""
    verdict = f"{goal}: {'met' if is_met else 'NOT met'}" if goal else ""
    print(f"{what:<28} {figure:>32}   {verdict}".rstrip(), flush=True)  # noqa: T201


def report_lengths(trace: Path, folder: Path, lengths: Sequence[int]) -> None:
    """Print what traces of several lengths take, and how that grows."""
    costs = []
    for length in lengths:
        grown = grow(trace, folder / f"trace{length}", length)
        cost, _ = infer(OURS, grown, folder)
        shutil.rmtree(grown)
        costs.append(cost)
        is_met = cost.megabytes < MOST_MEGABYTES
        goal = f"below {MOST_MEGABYTES:,} MB"
        report(
            f"{length:,} records",
            f"{cost.seconds:,.1f} s, {cost.megabytes:,.0f} MB",
            goal,
            is_met=is_met,
        )
    times = [cost.seconds for cost in costs]
    slope = statistics.linear_regression(lengths, times)
    us = slope.slope * 1e6
    report("a record, by the slope", f"{us:.1f} us", f"at most {MOST_US} us", is_met=us <= MOST_US)
    # Start-up is no part of how the cost grows.
    grown_by = [math.log(max(time - slope.intercept, 1e-9)) for time in times]
    power = statistics.linear_regression(list(map(math.log, lengths)), grown_by).slope
    goal = f"below {MOST_EXPONENT}"
    report("exponent of the length", f"{power:.3f}", goal, is_met=power < MOST_EXPONENT)


def report_peer(scripts: Path, folder: Path, ours: Cost) -> None:
    """Print what the peer takes for its own trace of the same run."""
    theirs, found = infer(scripts, collect(scripts, folder / "peer"), folder)
    factor = theirs.seconds / ours.seconds
    report(
        "peer, digits_cnn",
        f"{theirs.seconds:,.1f} s, {theirs.megabytes:,.0f} MB",
    )
    report("peer, invariants", f"{found:,}")
    report(
        "times faster",
        f"{factor:,.0f}",
        f"at least {LEAST_FACTOR}",
        is_met=factor >= LEAST_FACTOR,
    )
    share = ours.megabytes / theirs.megabytes
    goal = f"below {MOST_SHARE:.0%}"
    report("share of its memory", f"{share:.0%}", goal, is_met=share < MOST_SHARE)


def main() -> int:
    """Measure and print; the exit code is 0 whether or not the goals are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=LENGTHS, help="records of the grown traces"
    )
    parser.add_argument(
        "--peer",
        type=Path,
        default=os.environ.get("TRAINCHECK_PEER"),
        metavar="FOLDER",
        help="of the peer's commands; without it, and TRAINCHECK_PEER, it is left out",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = collect(OURS, folder / "ours")
        ours, found = infer(OURS, trace, folder)
        report("digits_cnn, 30 steps", f"{ours.seconds:,.2f} s, {ours.megabytes:,.0f} MB")
        report("invariants", f"{found:,}", "at most 150", is_met=found <= 150)
        if options.peer is not None:
            report_peer(Path(options.peer).absolute(), folder, ours)
        if len(options.lengths) > 1:
            report_lengths(trace, folder, sorted(options.lengths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
