"""Runs the commands of TrainCheck as a user does: in processes of their own, on real programs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.progress_file import PROGRESS_NAME
from traincheck_trace_schema.results_file import (
    FAILED_NAME,
    NOT_TRIGGERED_NAME,
    PASSED_NAME,
    SUMMARY_NAME,
)
from traincheck_trace_schema.validation import validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.terminal import TerminalReporter

HERE = Path(__file__).parent
BIN = Path(sysconfig.get_path("scripts"))


@attrs.frozen
class Bench:
    """A folder in which commands are run, with the programs to run them on."""

    folder: Path
    environment: dict[str, str]
    tampered: list[Path] = attrs.field(factory=list)  # files that a test has broken

    def add(self, name: str, source: str) -> Path:
        path = self.folder / name
        path.write_text(source, encoding="utf-8")
        return path

    def run(self, command: str, *arguments: object, code: int | None = 0):
        """Run an installed command; `code` is the exit code that is expected, if one is."""
        result = subprocess.run(
            [BIN / command, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert code in (None, result.returncode), f"{result.stdout}\n{result.stderr}"
        return result

    def start(self, command: str, *arguments: object) -> subprocess.Popen[str]:
        """Start an installed command, and leave it to the test to wait for its end."""
        return subprocess.Popen(
            [BIN / command, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def python(self, *arguments: object, code: int = 0):
        return self.run(Path(sys.executable).name, *arguments, code=code)

    def collect(
        self,
        script: str,
        out: str,
        *options: object,
        ranks: int = 1,
        code: int = 0,
        models: tuple[str, ...] = ("model",),
    ):
        launch = ()
        if ranks > 1:
            line = f'torchrun --standalone --nproc-per-node {ranks} {script} "$@"\n'
            launch = ("--shscript", self.add(f"run_{out}.sh", line))
        return self.run(
            "traincheck-collect",
            *("--pyscript", script, "--models-to-track", *models, "--output-dir", out),
            *(*launch, *options),
            code=code,
        )

    def infer(self, *traces: str, out: str = "invariants.json"):
        return self.run("traincheck-infer", "-f", *traces, "-o", out)

    def check(self, trace: str, out: str, *, invariants: str = "invariants.json", code: int | None):
        self.run("traincheck-check", "-f", trace, "-i", invariants, "-o", out, code=code)
        return loads((self.folder / out / SUMMARY_NAME).read_text())

    @contextlib.contextmanager
    def followed(self, trace: str, out: str, *, invariants: str = "invariants.json"):
        """Check a trace while it is written; afterwards the results are whole."""
        log = self.folder / f"{out}.txt"
        command = ("traincheck-onlinecheck", "-f", trace, "-i", invariants, "-o", out)
        with (
            log.open("w") as output,
            subprocess.Popen(
                [BIN / command[0], *command[1:]],
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=output,
            ) as process,
        ):
            try:
                yield process
                process.wait(60)
            finally:
                process.kill()
        assert process.returncode in (0, 1), log.read_text()

    def assert_same_results(self, one: str, other: str) -> None:
        """Hold the results of two checks of the same run against each other."""
        for name in (SUMMARY_NAME, FAILED_NAME, PASSED_NAME, NOT_TRIGGERED_NAME):
            first, second = (self.folder / out / name for out in (one, other))
            assert first.read_text() == second.read_text(), name

    def records(self, trace: str) -> list[dict[str, object]]:
        shards = sorted((self.folder / trace).glob("trace_*.json"))
        return [loads(line) for shard in shards for line in shard.read_text().splitlines()]

    def has_changes(self, trace: str) -> bool:
        """Whether the trace tells that the content of a variable has changed."""
        changes = (one for one in self.records(trace) if one.get("event") == "changed")
        return any("data" in change["attributes"] for change in changes)

    def assert_valid(self) -> None:
        """Hold every document in the folder against its schema, but for what was tampered with."""
        documents = {
            "trace": self.folder.glob("*/trace_*.json"),
            "plan": self.folder.glob("*/plan.json"),
            "invariants": self.folder.glob("invariants*.json"),
            "results": [
                *(*self.folder.glob("*/*.log"), *self.folder.glob("*/check/*.log")),
                *self.folder.glob(f"**/{SUMMARY_NAME}"),
            ],
            "progress": self.folder.glob(f"**/{PROGRESS_NAME}"),
        }
        for document, paths in documents.items():
            for path in set(paths).difference(self.tampered):
                whole = path.name in (SUMMARY_NAME, PROGRESS_NAME, "plan.json")
                text = path.read_text()
                for line in [text] if whole else text.splitlines():
                    validate(document, loads(line))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Make a folder to run commands in; what they wrote there is validated in the end."""
    bench = _bench(tmp_path)
    yield bench
    bench.assert_valid()


@pytest.fixture(scope="module")
def module_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Make a folder for what the tests of a module have in common."""
    return _bench(tmp_path_factory.mktemp("common"))


def _bench(folder: Path) -> Bench:
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    return Bench(folder, environment)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print the rows that tests have recorded for a table, whichever process ran them."""
    rows = {
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, text in getattr(report, "user_properties", ())
        if name == "table" and report.when == "call"
    }
    if rows:
        terminalreporter.section("what was recorded")
        for row in sorted(rows):
            terminalreporter.write_line(row)
