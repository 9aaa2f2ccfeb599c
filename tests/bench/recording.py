"""What recording costs a training program, beside the program alone and beside the peer.

Each workload is run plain, recorded in full, by a plan of 40 functions and all parameters, by the
plan of invariants that were learnt from it (of 100 of them, if there are more), and with no step
sampled but the first; in turn, several times. Of the CPU time of each run's steps the median is
taken, and of the medians the best: other programs on the machine only ever add to it.
The mean is printed beside it, since what is written in batches falls into few steps. The floor is
the program with digests of its parameters and gradients once a step, and nothing else. Start-up is
what a run took outside its steps, evaluation and end included, and what the launcher takes of
itself. The peer, TrainCheck 0.2.0, needs an environment of its own with torch and scikit-learn;
`--peer` names the folder of its commands. It is slow, and so run for fewer steps and times.

Run it with `hatch run bench recording --peer ENV/bin`; all of it takes about an hour.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from overhead.peer import Peer
from overhead.programs import SCRIPTS, WORKLOADS, Workload
from overhead.recorded import NEVER, figures, plan_from, plan_of_invariants, prepare, prepare_floor
from overhead.runs import Best, Run, run, seconds
from overhead.table import Result, print_result, print_targets

from traincheck_trace_schema.records import Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY_STEP = Sampling()
ONLY_THE_FIRST = Sampling(interval=NEVER)


@attrs.frozen
class Bench:
    """Measures workloads in a folder."""

    folder: Path
    runs: int
    steps: int
    peer: Peer | None
    launcher_s: float

    def measure(self, workload: Workload) -> Result:
        """Run a workload in each way, in turn."""
        folder = self.folder / workload.name
        folder.mkdir()
        scripts = self._scripts(workload, folder)
        runs: dict[str, list[Run]] = {how: [] for how in scripts}
        for number in range(self.runs):
            order = list(scripts)
            for how in order[number % len(order) :] + order[: number % len(order)]:
                runs[how].append(self._run(workload, scripts[how], folder))
        best = {how: Best.of(each) for how, each in runs.items()}
        return Result(
            workload=workload.name,
            plain=best["plain"],
            noise=_noise(runs["plain"]),
            full=best["full"],
            plan=best["plan"],
            invariants=best["invariants"],
            unsampled=best["unsampled"],
            floor=best["floor"],
            launcher_s=self.launcher_s,
            trace=figures(folder / "full"),
            peer=None if self.peer is None else self.peer.measure(workload, folder),
        )

    def _scripts(self, workload: Workload, folder: Path) -> Mapping[str, Path]:
        """Return what is run, by how it is recorded; one run in full tells what to plan."""
        full = prepare(workload, folder / "full", None, EVERY_STEP)
        self._run(workload, full, folder)
        plan = plan_from(folder / "full")
        learnt = plan_of_invariants(folder / "full")
        return {
            "plain": workload.path,
            "full": full,
            "plan": prepare(workload, folder / "plan", plan, EVERY_STEP),
            "invariants": prepare(workload, folder / "invariants", learnt, EVERY_STEP),
            "unsampled": prepare(workload, folder / "unsampled", None, ONLY_THE_FIRST),
            "floor": prepare_floor(workload, folder / "floor"),
        }

    def _run(self, workload: Workload, script: Path, folder: Path) -> Run:
        for trace in script.parent.glob("trace_*"):
            trace.unlink()
        options = ("--steps", str(self.steps), "--timings", str(folder / "timings"))
        return run([*workload.argv(script), *options], folder, ranks=workload.ranks)


def _noise(plain: list[Run]) -> float:
    """Return by how much two halves of the same runs differ, as a ratio of at least 1."""
    medians = [run.median_ms for run in plain]
    halves = min(medians[::2]), min(medians[1::2], default=medians[0])
    return max(halves) / min(halves)


def launcher_seconds(folder: Path, rounds: int) -> float:
    """Return the CPU time that the launcher adds to a program without torch."""
    folder.mkdir()
    script = folder / "empty.py"
    script.touch()
    collect = [str(SCRIPTS / "traincheck-collect"), "--pyscript", str(script), "--output-dir"]
    alone, with_it = [], []
    for number in range(rounds):
        alone.append(seconds([sys.executable, str(script)], folder))
        with_it.append(seconds([*collect, str(folder / f"out{number}")], folder))
    return min(with_it) - min(alone)


def main() -> int:
    """Measure and print; the exit code is 0 whether or not the targets are met."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=[*WORKLOADS])
    parser.add_argument("--runs", type=int, default=8, help="of each kind (default 8)")
    parser.add_argument("--steps", type=int, default=50, help="of each run (default 50)")
    parser.add_argument(
        "--peer",
        type=Path,
        default=os.environ.get("TRAINCHECK_PEER"),
        metavar="FOLDER",
        help="of the peer's commands; without it, and TRAINCHECK_PEER, it is left out",
    )
    parser.add_argument("--peer-runs", type=int, default=1)
    parser.add_argument("--peer-steps", type=int, default=15)
    options = parser.parse_args()
    peer = None
    if options.peer is not None:
        peer = Peer(options.peer.absolute(), options.peer_runs, options.peer_steps)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launcher_s = launcher_seconds(folder / "launcher", min(options.runs, 5))
        bench = Bench(folder, options.runs, options.steps, peer, launcher_s)
        results = []
        for workload in options.workloads:
            results.append(bench.measure(WORKLOADS[workload]))
            print_result(results[-1])
    print_targets(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
