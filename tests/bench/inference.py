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
from typing import TYPE_CHECKING

from measuring.cost import Cost, run
from measuring.growth import grow
from measuring.table import report

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = Path(__file__).parents[1] / "workloads" / "digits_cnn.py"
STEPS = 30
OURS = Path(sysconfig.get_path("scripts"))
LENGTHS = (50_000, 200_000, 600_000, 2_000_000)
MOST_US = 100
MOST_EXPONENT = 1.1
MOST_MEGABYTES = 1_500
LEAST_FACTOR = 100  # how much faster than the peer
MOST_SHARE = 0.25  # of the peer's memory


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
