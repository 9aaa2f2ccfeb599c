"""How many faults are found that are planted in the workloads, and in which step.

Of each workload invariants are learnt from two runs that differ in seed and length. Then each fault
of `planting/*.faults` is planted in the program, which is run with a third seed, recorded by the
plan of the invariants, and checked. All goes through the command lines. A fault is found if
anything is violated: `false_alarms` shows that nothing is without one.

Run it with `hatch run bench planted [--workloads NAME ...] [--only WORD ...]`; all of it takes a
quarter of an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from measuring.table import report
from overhead.programs import SCRIPTS, WORKLOADS, Workload
from planting.faults import Fault, faults

from traincheck_trace_schema.codec import loads

if TYPE_CHECKING:
    from collections.abc import Sequence

REFERENCES = (("--steps", "40", "--seed", "1"), ("--steps", "30", "--seed", "2"))
FAULTY = ("--steps", "30", "--seed", "5")
AT_ONCE = 2


@attrs.frozen
class Found:
    """What a check told of a run."""

    violations: int
    step: int | None = None
    claim: str = ""


@attrs.frozen
class Laboratory:
    """Runs a workload, with faults and without, in a folder."""

    workload: Workload
    folder: Path

    def learn(self) -> None:
        """Learn invariants from two good runs.

        Raises:
            RuntimeError: A command failed.
        """
        names = [f"good{number}" for number in range(len(REFERENCES))]
        for name, options in zip(names, REFERENCES, strict=True):
            self._collect(self.workload.path, name, options)
        self._run("traincheck-infer", "-f", *names, "-o", "invariants.json")

    def find(self, fault: Fault) -> Found:
        """Run the program with a fault, and check it.

        Raises:
            RuntimeError: A command failed.
        """
        name = fault.name.replace(" ", "_").replace(",", "")
        program = self.folder / f"{name}.py"
        program.write_text(fault.planted_in(self.workload.path.read_text()), encoding="utf-8")
        self._collect(program, name, FAULTY, "--invariants", "invariants.json")
        checked = ("-f", name, "-i", "invariants.json", "-o", f"{name}_results")
        self._run("traincheck-check", *checked, "--no-html-report", "--exit-zero")
        summary = loads((self.folder / f"{name}_results/violations_summary.json").read_text())
        violations = summary["violations"]
        if not violations:
            return Found(0)
        first = min(violations, key=lambda one: one["first"]["step"])
        return Found(len(violations), first["first"]["step"], first["text_description"])

    def _collect(self, program: Path, out: str, options: Sequence[str], *more: str) -> None:
        ranks = self.workload.ranks
        launch = () if ranks == 1 else ("--nproc-per-node", str(ranks))
        self._run(
            "traincheck-collect",
            *("--pyscript", str(program), "--models-to-track", *self.workload.models),
            *("--output-dir", out, *launch, *more, "--", *options),
        )

    def _run(self, command: str, *arguments: str) -> None:
        result = subprocess.run(
            [SCRIPTS / command, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise RuntimeError(f"{command} {' '.join(arguments)}:\n{result.stderr[-2000:]}")


def measure(workload: Workload, only: Sequence[str]) -> tuple[int, int]:
    """Print what is found in a workload; return how many of how many faults."""
    chosen = [one for one in faults(workload.name) if all(word in one.name for word in only)]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as pool:
        laboratory = Laboratory(workload, Path(name))
        if chosen:
            laboratory.learn()
        number = 0
        for fault, found in zip(chosen, pool.map(laboratory.find, chosen), strict=True):
            number += found.violations > 0
            told = f"step {found.step}: {found.claim}" if found.violations else "NOT found"
            print(f"{workload.name:<17} {fault.name:<43} {told}"[:160], flush=True)  # noqa: T201
    return number, len(chosen)


def main() -> int:
    """Measure; the exit code is 0 whether or not all is found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=[*WORKLOADS])
    parser.add_argument("--only", nargs="+", default=[], help="words that the faults' names have")
    options = parser.parse_args()
    results = {name: measure(WORKLOADS[name], options.only) for name in options.workloads}
    for name, (found, of) in results.items():
        report(name, f"{found} of {of} found")
    found, of = (sum(numbers) for numbers in zip(*results.values(), strict=True))
    report("all", f"{found} of {of} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
