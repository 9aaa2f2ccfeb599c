"""Measures detection and false alarms on a folder of cases, through the command lines alone.

A case is `buggy.py`, `fixed.py` and `case.json`. Invariants are learnt from the fixed program; then
the buggy one is checked, and a twin: the fixed one with other seeds. A case is *found* if the buggy
run breaks an invariant that the twin does not break, not before `trigger_step` (-1: before the
first step) and at most one step after it. Every violation in the twin is a false alarm. Both runs
are checked while they go on, too: what that finds has to be the same.

    hatch run cases [--cases FOLDER] [--only NAME ...] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

SEED = re.compile(r"((?:manual_seed|default_rng|\.seed)\()(\d+)")
LIMIT_SECONDS = 300
USABLE = (0, 1)
RESULTS = ("violations_summary.json", "failed.log", "passed.log", "not_triggered.log")


class CaseError(Exception):
    """A command failed, so the case measures nothing."""


@dataclass
class Row:
    """What came of one case."""

    case: str
    found: bool = False
    delay: int | None = None
    violations: int = 0
    early: int = 0
    false_alarms: int = 0
    failed: str = ""

    def __str__(self) -> str:
        mark = "FAILED" if self.failed else "found" if self.found else "MISSED"
        figures = f"delay={self.delay} violations={self.violations} early={self.early}"
        return f"{self.case:32} {mark:7} {figures} false_alarms={self.false_alarms} {self.failed}"


@dataclass
class Case:
    """A copy of a case in a folder in which commands are run."""

    folder: Path
    ranks: int
    trigger: int

    def run(self, *command: object, usable: tuple[int, ...] = (0,)) -> None:
        """Run a command; its output goes to `log.txt`."""
        words = [str(word) for word in command]
        with (self.folder / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(words)}\n")
            log.flush()
            result = subprocess.run(
                words,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                timeout=LIMIT_SECONDS,
                check=False,
            )
        if result.returncode not in usable:
            raise CaseError(f"{Path(words[0]).name}: exit {result.returncode}, see log.txt")

    def collect(self, name: str, *options: str) -> None:
        """Record a program of the case."""
        launch: tuple[str, ...] = ()
        if self.ranks > 1:
            script = self.folder / f"run_{name}.sh"
            script.write_text(f"torchrun --standalone --nproc-per-node {self.ranks} {name}.py\n")
            launch = ("--shscript", script.name)
        named = ("--pyscript", f"{name}.py", *launch, "--models-to-track", "model")
        self.run(command("traincheck-collect"), *named, "--output-dir", f"t_{name}", *options)

    def check(self, name: str) -> dict[str, int]:
        """Check a program of the case; return the first step of each broken invariant."""
        given = ("-f", f"t_{name}", "-i", "invariants.json", "-o")
        with (
            (self.folder / f"live_{name}.txt").open("w") as log,
            subprocess.Popen(
                [command("traincheck-onlinecheck"), *given, f"live_{name}"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            ) as live,
        ):
            try:
                self.collect(name, "--invariants", "invariants.json")
                live.wait(LIMIT_SECONDS)
            finally:
                live.kill()
        self.run(command("traincheck-check"), *given, f"r_{name}", usable=USABLE)
        for result in RESULTS:
            one, other = (self.folder / out / result for out in (f"live_{name}", f"r_{name}"))
            if not one.exists() or one.read_bytes() != other.read_bytes():
                raise CaseError(f"{name}: checked live, {result} is another")
        summary = json.loads((self.folder / f"r_{name}" / "violations_summary.json").read_text())
        return {one["invariant_id"]: one["first"]["step"] for one in summary["violations"]}

    def measure(self, row: Row) -> None:
        """Fill in what came of the case."""
        self.collect("fixed")
        self.run(command("traincheck-infer"), "-f", "t_fixed", "-o", "invariants.json")
        broken, alarms = self.check("buggy"), self.check("twin")
        steps = [step for name, step in broken.items() if name not in alarms]
        soon = [step for step in steps if step >= (self.trigger if self.trigger > 0 else -1)]
        row.violations, row.early = len(steps), len(steps) - len(soon)
        row.false_alarms = len(alarms)
        if soon:
            row.delay = max(0, min(soon) - self.trigger)
            row.found = row.delay <= 1


def command(name: str) -> str:
    """Return the path of an installed command."""
    return str(Path(sysconfig.get_path("scripts")) / name)


def measure(source: Path, out: Path) -> Row:
    """Measure one case in a copy of its folder."""
    about = json.loads((source / "case.json").read_text())
    folder = out / source.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    twin = SEED.sub(lambda seed: f"{seed[1]}{int(seed[2]) + 1}", (folder / "fixed.py").read_text())
    (folder / "twin.py").write_text(twin)
    row = Row(source.name)
    try:
        Case(folder, about["ranks"], about["trigger_step"]).measure(row)
    except (CaseError, subprocess.TimeoutExpired) as error:
        row.failed = str(error)
    return row


def main() -> int:
    """Measure the cases that are asked for; 0 if all are found without a false alarm."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=Path, default=Path(__file__).parent)
    parser.add_argument("--out", type=Path, default=None, help="default: a temporary folder")
    parser.add_argument("--only", nargs="*", metavar="NAME")
    options = parser.parse_args()
    out = (options.out or Path(tempfile.mkdtemp(prefix="traincheck_cases_"))).resolve()
    os.environ["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = []
    for source in sorted(path.parent for path in options.cases.glob("*/case.json")):
        if not options.only or source.name in options.only:
            rows.append(measure(source, out))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    found, alarms = sum(row.found for row in rows), sum(row.false_alarms for row in rows)
    sys.stdout.write(f"{found}/{len(rows)} found, {alarms} false alarms; results in {out}\n")
    return int(not rows or found < len(rows) or alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
