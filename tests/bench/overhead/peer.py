"""TrainCheck 0.2.0, run as its users run it, from an environment of its own."""

from __future__ import annotations

import os
import shutil
import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import ujson
from overhead.runs import Best, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overhead.programs import Workload
    from overhead.runs import Run


@attrs.frozen
class PeerFigures:
    """What the peer took, and what its traces have of the median step of one rank."""

    best: Best
    records: float
    size_bytes: float
    all_records: int


@attrs.frozen
class Peer:
    """The peer's commands, and how long and how often it is run: it is slow."""

    scripts: Path
    runs: int
    steps: int

    def measure(self, workload: Workload, folder: Path) -> PeerFigures:
        """Run a program under full collection."""
        best = Best.of(
            self._collect(workload, folder / f"peer{number}") for number in range(self.runs)
        )
        counts: Counter[int] = Counter()
        sizes: Counter[int] = Counter()
        for step, size in _lines(folder / "peer0" / "full"):
            counts[step] += 1
            sizes[step] += size
        steps = sorted(counts)[2:-2]
        records, size_bytes = (
            statistics.median(of[step] for step in steps) / workload.ranks for of in (counts, sizes)
        )
        return PeerFigures(best, records, size_bytes, sum(counts.values()) // workload.ranks)

    def _collect(self, workload: Workload, folder: Path) -> Run:
        folder.mkdir()
        program = shutil.copy(workload.path, folder)  # the peer writes beside the program
        timings = folder / "timings"
        launch = f"torchrun --standalone --nproc-per-node {workload.ranks}"
        start = "python" if workload.ranks == 1 else launch
        script = folder / "run_full.sh"
        script.write_text(f"{start} {workload.name}.py --steps {self.steps} --timings {timings}\n")
        argv = [
            *(str(self.scripts / "traincheck-collect"), "--pyscript", str(program)),
            *("--shscript", str(script), "--models-to-track", *workload.models),
            *("--output-dir", str(folder / "full")),
        ]
        if workload.ranks > 1:  # its default tracker crashes in DDP
            argv += ["--model-tracker-style", "subclass"]
        path = os.pathsep.join((str(self.scripts), os.environ["PATH"]))
        env = {"PATH": path, "PYTHONPATH": ""}
        return run(argv, folder, ranks=workload.ranks, env=env)


def _lines(folder: Path) -> Iterator[tuple[int, int]]:
    """Yield the training step and the size of each record."""
    for path in (*folder.glob("trace_*"), *folder.glob("proxy_log*")):
        with path.open("rb") as file:
            for line in file:
                meta: dict[str, Any] = ujson.loads(line).get("meta_vars") or {}
                yield meta.get("step", -1), len(line)
