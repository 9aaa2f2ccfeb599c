"""How fast traces are checked, in how much memory, and how soon a violation is told while live.

Two traces are grown from real runs of digits_cnn: one that was collected in full, of whose records
at most 5 % are mentioned by an invariant, and one that was collected by the plan of the invariants
that are checked, which mention all of it. Each is checked against 500 invariants: those learnt that
are about it, and others about functions that it never calls, as when many are published and few
apply. Throughput is set against a loop that does nothing but `ujson.loads` of each line, in the
same process; the records a second are the slope of a line through the times at the lengths, memory
that of processes of their own. The peer checked 1,500 records a second.

Run it with `hatch run bench checking`; the longest trace takes minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import ujson
from measuring.cost import run
from measuring.growth import grow
from measuring.table import report

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.judge import check_run
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.invariant_file import read_invariants, write_invariants
from traincheck_trace_schema.invariants import (
    APIParam,
    InputOutputParam,
    VarNameParam,
    VarTypeParam,
    function_of,
)
from traincheck_trace_schema.reading import open_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traincheck_trace_schema.invariants import Invariant, Param

PROGRAM = Path(__file__).parents[1] / "workloads" / "digits_cnn.py"
OURS = Path(sysconfig.get_path("scripts"))
STEPS = 60
CLAIMS = 500
LENGTHS = (100_000, 300_000, 1_000_000, 2_000_000)
LEAST_OF_FULL, LEAST_OF_PLAN = 0.40, 0.15  # of the speed of a bare loop
LEAST_A_SECOND = 75_000
MOST_MEGABYTES = 200
RARE = 0.05  # of the records of the full trace
REPEATS = 5


@attrs.frozen
class Setting:
    """A trace, and what it is checked against."""

    name: str
    trace: Path
    invariants: Path
    least: float


def many(chosen: Sequence[Invariant], learnt: Sequence[Invariant]) -> list[Invariant]:
    """Return as many claims as are asked for: those chosen, and others.

    These claim what was learnt of functions of other names, which are never called.
    """
    told = list(chosen)
    named = [one for one in learnt if any(map(function_of, one.params))]
    for number in range(CLAIMS - len(told)):
        one = named[number % len(named)]
        params = tuple(_renamed(param, number) for param in one.params)
        told.append(attrs.evolve(one, id=f"other-{number}", params=params))
    return told


def _renamed(param: Param, number: int) -> Param:
    if isinstance(param, APIParam):
        return attrs.evolve(param, api_full_name=f"{param.api_full_name}_{number}")
    if isinstance(param, InputOutputParam):
        return attrs.evolve(param, api_name=f"{param.api_name}_{number}")
    return param


def is_about_variables(invariant: Invariant) -> bool:
    """Whether an invariant mentions the records of variables."""
    return any(isinstance(param, VarTypeParam | VarNameParam) for param in invariant.params)


def rare(invariants: Sequence[Invariant], trace: Path) -> list[Invariant]:
    """Return the invariants about calls that are few: together below `RARE` of all records."""
    functions: dict[str, int] = {}
    records = 0
    names: dict[str, set[str]] = {}
    for shard in trace.glob("trace_*"):
        for line in shard.read_text().splitlines():
            record = loads(line)
            records += 1
            if record["kind"] == "function":
                names[record["name"]] = {record["name"], *record.get("bases", ())}
            elif record["kind"] in {"call_begin", "call_end"}:
                for name in names.get(record["function"], {record["function"]}):
                    functions[name] = functions.get(name, 0) + 1
    kept, share = [], 0.0
    costs = {one.id: _records_of(one, functions) / records for one in invariants}
    for one in sorted(invariants, key=lambda one: costs[one.id]):
        if costs[one.id] > 0 and share + costs[one.id] <= RARE:
            kept.append(one)
            share += costs[one.id]
    return kept


def _records_of(invariant: Invariant, functions: dict[str, int]) -> float:
    """Return how many records an invariant is about; too many if it is about variables."""
    if is_about_variables(invariant):
        return float("inf")
    return sum(functions.get(function_of(param) or "", 0) for param in invariant.params)


def seconds(act: Callable[[], Any]) -> float:
    """Return the least time of the processor that something takes, of several times."""
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.process_time()
        act()
        best = min(best, time.process_time() - begun)
    return best


def throughput(setting: Setting, folder: Path) -> bool:
    """Print how fast a trace is checked beside a bare loop."""
    trace = grow(setting.trace, folder / f"{setting.name}_short", 50_000)
    shards = list(trace.glob("trace_*"))
    records = sum(1 for shard in shards for _ in shard.open("rb"))
    claims = Claims.of(read_invariants([setting.invariants]))

    def bare() -> None:
        for shard in shards:
            with shard.open("rb") as file:
                for line in file:
                    ujson.loads(line)

    def read() -> None:
        for _ in open_run([trace]).stream():
            pass

    least, reading = seconds(bare), seconds(read)
    checking = seconds(lambda: check_run(open_run([trace]), claims))
    share = least / checking
    for what, time_ in (("ujson.loads", least), ("reading", reading), ("checking", checking)):
        report(f"{setting.name}, {what}", f"{time_ / records * 1e6:.1f} us a record")
    is_met = share >= setting.least
    report(
        f"{setting.name}, of a bare loop",
        f"{share:.0%}",
        f"at least {setting.least:.0%}",
        is_met=is_met,
    )
    return is_met


def lengths(setting: Setting, folder: Path, counts: Sequence[int]) -> bool:
    """Print times and memory by length, and the records a second by the slope."""
    points = []
    highest = 0.0
    for count in counts:
        trace = grow(setting.trace, folder / f"{setting.name}_{count}", count)
        argv: list[str | Path] = [OURS / "traincheck-check", "-f", trace, "-i", setting.invariants]
        argv += ["-o", folder / f"results_{count}", "--exit-zero", "--no-html-report"]
        cost = run(argv, folder)
        highest = max(highest, cost.megabytes)
        points.append((count, cost.seconds))
        is_low = cost.megabytes < MOST_MEGABYTES
        what = f"{cost.seconds:.1f} s, {cost.megabytes:.0f} MB"
        report(
            f"{setting.name}, {count:,} records", what, f"below {MOST_MEGABYTES} MB", is_met=is_low
        )
        for shard in trace.iterdir():
            shard.unlink()
    counted, times = zip(*points, strict=True)
    rate = 1 / statistics.linear_regression(counted, times).slope
    is_fast = rate >= LEAST_A_SECOND
    asked = f"at least {LEAST_A_SECOND:,}"
    report(f"{setting.name}, by the slope", f"{rate:,.0f} records a second", asked, is_met=is_fast)
    return is_fast and highest < MOST_MEGABYTES


def settings(folder: Path) -> list[Setting]:
    """Collect the traces, and infer what they are checked against."""
    collect: list[str | Path] = [OURS / "traincheck-collect", "--pyscript", PROGRAM]
    collect += ["--models-to-track", "model"]
    arguments = ["--", "--steps", str(STEPS)]
    run([*collect, "--output-dir", folder / "full", *arguments], folder)
    learnt = folder / "learnt.json"
    run([OURS / "traincheck-infer", "-f", folder / "full", "-o", learnt], folder)
    run([*collect, "--output-dir", folder / "plan", "-i", learnt, *arguments], folder)
    invariants = read_invariants([learnt])
    few = rare(invariants, folder / "full")
    report("invariants", f"{len(invariants)}, {len(few)} of them about few records")
    of_calls = [one for one in invariants if not is_about_variables(one)]
    write_invariants(folder / "few.json", many(few, of_calls))
    write_invariants(folder / "all.json", many(invariants, invariants))
    return [
        Setting("full", folder / "full", folder / "few.json", LEAST_OF_FULL),
        Setting("plan", folder / "plan", folder / "all.json", LEAST_OF_PLAN),
    ]


def main() -> int:
    """Measure; 0 if all that is asked for is met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="records")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        found = settings(folder)
        met = [throughput(each, folder) for each in found]
        met += [lengths(each, folder, options.lengths) for each in found]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
