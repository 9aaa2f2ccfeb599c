"""One run of a program: what its steps took, and what all the rest took."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FIRST = 2  # the steps before it warm caches, the first look at everything is in them


@attrs.frozen
class Run:
    """CPU time of a run: of each step in milliseconds, and of all around the steps in seconds."""

    steps_ms: Sequence[float]
    outside_s: float  # a rank: start, evaluation and end

    @property
    def median_ms(self) -> float:
        """The median step."""
        return statistics.median(self.steps_ms)

    @property
    def mean_ms(self) -> float:
        """The mean step: what is written in batches falls into few of them."""
        return statistics.fmean(self.steps_ms)


@attrs.frozen
class Best:
    """The least that any of several runs took: other programs only ever add to it."""

    median_ms: float
    mean_ms: float
    outside_s: float

    @classmethod
    def of(cls, runs: Iterable[Run]) -> Best:
        """Return the best of each figure."""
        runs = list(runs)
        return cls(
            min(run.median_ms for run in runs),
            min(run.mean_ms for run in runs),
            min(run.outside_s for run in runs),
        )


def run(
    argv: Sequence[str], folder: Path, *, ranks: int, env: Mapping[str, str] | None = None
) -> Run:
    """Run a program that writes what its steps took to `timings` and `timings.cpu`."""
    took_s = seconds(argv, folder, env)
    timings = folder / "timings.cpu"
    steps_s = json.loads(timings.read_text())
    timings.unlink()
    outside_s = took_s / ranks - sum(steps_s)
    return Run([1000 * step_s for step_s in steps_s[FIRST:]], outside_s)


def seconds(argv: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> float:
    """Run a program; return the CPU time that it took, with all that it started."""
    before = _children_s()
    result = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{result.stdout}\n{result.stderr}"[-4000:])
    return _children_s() - before


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
