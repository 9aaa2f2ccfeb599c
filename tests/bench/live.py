"""How soon a violation is told while a run goes on.

Four ranks write 2,000 records a second in all; one of them breaks an invariant at a step that is
known. Told is how long it took from the moment at which the step's records were on the disk until
the violation stood on the terminal, and in the summary, for each of several runs.

Run it with `hatch run bench live`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
from measuring.cost import run
from measuring.table import report

from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.results_file import SUMMARY_NAME

OURS = Path(sysconfig.get_path("scripts"))
RANKS, RATE = 4, 2_000
STEPS, BROKEN_AT = 120, 40
RUNS = 3
MOST_SECONDS = 1.0
PAUSE = 0.02  # between two pieces


@attrs.define
class Writer:
    """Writes the shards of a trace piece by piece, as ranks that train do."""

    shards: Mapping[str, Sequence[str]]
    folder: Path
    ended: float = 0.0  # when the records of the step that breaks were all there

    def write(self) -> None:
        """Write all of it."""
        at_once = max(1, int(RATE * PAUSE / len(self.shards)))
        over = max(map(_end_of_step, self.shards.values()))
        for begin in range(0, max(map(len, self.shards.values())), at_once):
            next_ = time.monotonic() + PAUSE
            for name, lines in self.shards.items():
                with (self.folder / name).open("a") as file:
                    file.writelines(lines[begin : begin + at_once])
            if begin <= over < begin + at_once:
                self.ended = time.monotonic()
            time.sleep(max(0.0, next_ - time.monotonic()))


def _end_of_step(lines: Sequence[str]) -> int:
    """Return the first line of what follows the step that breaks: by then the rank has left it."""
    return next(at for at, line in enumerate(lines) if loads(line).get("step", 0) > BROKEN_AT)


def delays(
    shards: Mapping[str, Sequence[str]], invariants: Path, folder: Path
) -> tuple[float, float]:
    """Return the seconds until the violation stood on the terminal, and in the summary."""
    growing = folder / "growing"
    growing.mkdir(parents=True)
    writer = Writer(shards, growing)
    thread = threading.Thread(target=writer.write)
    argv = [OURS / "traincheck-onlinecheck", "-f", growing, "-i", invariants]
    argv += ["-o", folder / "results"]
    with subprocess.Popen(
        argv, text=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as checker:
        time.sleep(2.0)  # it is there before the training
        thread.start()
        summary = folder / "results" / SUMMARY_NAME
        if checker.stdout is None or not checker.stdout.readline():
            sys.exit("nothing was told")
        told = time.monotonic()
        while not (summary.exists() and loads(summary.read_text())["failed"]):
            time.sleep(0.005)
        stood = time.monotonic()
        checker.stdout.read()
    thread.join()
    return told - writer.ended, stood - writer.ended


def main() -> int:
    """Measure; 0 if what is asked for is met."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for run_, stuck in (("good", ()), ("bad", ("model.fc2.weight",))):
            trace = TraceBuilder(folder / run_, run_id=run_, world_size=RANKS)
            for rank in range(RANKS):
                own = stuck if rank == RANKS // 2 else ()
                train(trace.rank(rank), STEPS, stuck=own, since=BROKEN_AT)
            trace.write()
        invariants = folder / "invariants.json"
        run([OURS / "traincheck-infer", "-f", folder / "good", "-o", invariants], folder)
        shards = {
            path.name: path.read_text().splitlines(keepends=True)
            for path in sorted((folder / "bad").glob("trace_*"))
        }
        report("records", f"{sum(map(len, shards.values())):,}, {RATE:,} a second")
        found = [delays(shards, invariants, folder / str(number)) for number in range(RUNS)]
        worst = [max(times) for times in zip(*found, strict=True)]
        for what, delay in zip(("on the terminal", "in the summary"), worst, strict=True):
            goal = f"at most {MOST_SECONDS:g} s"
            report(what, f"{delay:.2f} s", goal, is_met=delay <= MOST_SECONDS)
    return int(max(worst) > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
