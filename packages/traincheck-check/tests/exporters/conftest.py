"""Reports of a run that goes on, and a folder to work in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import attrs
import pytest
from click.testing import CliRunner, Result

from traincheck_check.commands.check import check
from traincheck_check.judging.claims import read_claims
from traincheck_check.judging.judge import check_run
from traincheck_check.judging.outcome import outcome_of
from traincheck_check.reporting.api import Report, Session
from traincheck_trace_schema.cli import TraincheckCommand
from traincheck_trace_schema.reading import open_runs

if TYPE_CHECKING:
    from traincheck_check.reporting.api import Reporter, Sink

FC2 = "model.fc2.weight"


class WriteRun(Protocol):
    def __call__(
        self, name: str = ..., steps: int = ..., *, stuck: list[str] = ..., since: int = ...
    ) -> Path: ...


class Check(Protocol):
    def __call__(self, *args: str | Path) -> Result: ...


class Start(Protocol):
    def __call__(self, reporter: Reporter, *args: str) -> Sink: ...


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bad_run(write_run: WriteRun) -> Path:
    """Return the trace of a run of 6 steps, in which a weight stands still from step 3 on."""
    return write_run("bad", stuck=[FC2], since=3)


@pytest.fixture
def run_check(claims_file: Path) -> Check:
    """Return a function that calls `traincheck-check`; results go to `results`."""

    def run(*args: str | Path) -> Result:
        given = [*map(str, args), "-i", str(claims_file), "-o", "results"]
        return CliRunner().invoke(check, given)

    return run


@pytest.fixture
def live_reports(write_run: WriteRun, claims_file: Path) -> list[Report]:
    """Return what is told of a run of 8 steps while it goes on: after 2, 5, still 5, and 8 steps.

    A weight stands still from step 3 on.
    """
    claims = read_claims([claims_file], baseline=None, with_suppressed=False)
    reports = []
    for steps in (2, 5, 5, 8):
        folder = write_run(f"steps-{steps}", steps, stuck=[FC2], since=3)
        (run,) = open_runs([folder])
        outcome = outcome_of(check_run(run, claims))
        summary = attrs.evolve(outcome.summary, running=steps < 8, run_ids=("run",))
        outcome = attrs.evolve(outcome, summary=summary)
        outcome.write(Path("results"))
        reports.append(Report(name="", folder=Path("results"), outcome=outcome))
    return reports


@pytest.fixture
def start() -> Start:
    """Return a function that begins a reporter as a command that follows a run would."""

    def begin(reporter: Reporter, *args: str) -> Sink:
        command = TraincheckCommand("check", params=[*reporter.options()])
        values = command.make_context("check", [*args]).params
        session = Session(mode="live", output_dir=Path("results"), invariants={})
        sink = reporter.start({"fail_on": "new", "min_coverage": 0.0, **values}, session)
        assert sink is not None
        return sink

    return begin
