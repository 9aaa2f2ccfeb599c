"""`--report-tensorboard`, read back with TensorBoard's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from traincheck_check.reporting.exporters.tensorboard import TensorboardReporter

if TYPE_CHECKING:
    from conftest import Check, Start, WriteRun
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from traincheck_check.reporting.api import Report

pytest.importorskip("tensorboard")


def events(folder: str) -> EventAccumulator:
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415  slow
        EventAccumulator,
    )

    read = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    read.Reload()
    return read


def scalars(folder: str, tag: str) -> list[tuple[int, float]]:
    return [(each.step, each.value) for each in events(folder).Scalars(f"traincheck/{tag}")]


def test_violations_stand_at_their_steps(run_check: Check, bad_run: Path) -> None:
    """Beside the loss, one sees where it went wrong; the diagnosis stands in a text."""
    result = run_check("-f", bad_run, "--report-tensorboard", "tb")

    assert result.exit_code == 1, result.output
    assert scalars("tb", "violations") == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1)]
    assert scalars("tb", "violations_so_far")[-1] == (5, 3)
    assert scalars("tb", "coverage/applied_pct") == [(5, 75)]
    (text,) = events("tb").Tensors("traincheck/diagnosis")
    told = text.tensor_proto.string_val[0].decode()
    assert told.startswith("3 of 4 invariants applied")
    assert "model.fc2.weight" in told


def test_runs_have_folders_of_their_own(
    run_check: Check, bad_run: Path, write_run: WriteRun
) -> None:
    """TensorBoard takes a folder for a run."""
    run_check("-f", bad_run, write_run("good"), "--report-tensorboard", "tb")

    assert scalars("tb/bad", "checks/failed") == [(5, 1)]
    assert scalars("tb/good", "checks/failed") == [(5, 0)]


def test_a_live_run_is_told_while_it_goes_on(live_reports: list[Report], start: Start) -> None:
    """No step comes twice, nor after a later one, and what was told can be read at once."""
    sink = start(TensorboardReporter(), "--report-tensorboard", "tb")
    seen = []
    for report in live_reports:
        sink.update(report)
        seen.append(scalars("tb", "violations_so_far")[-1])
    sink.close()

    assert seen == [(0, 0), (3, 1), (3, 1), (7, 5)]
    assert [step for step, _ in scalars("tb", "violations")] == [*range(8)]
    assert scalars("tb", "violations/total") == [(0, 0), (3, 2), (7, 5)]
    assert len([*Path("tb").iterdir()]) == 1


def test_a_folder_that_can_not_be_made_is_told_at_once(run_check: Check, bad_run: Path) -> None:
    """Before anything is checked, in one line."""
    Path("file").touch()

    result = run_check("-f", bad_run, "--report-tensorboard", "file/tb")

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: file/tb")
    assert len(result.stderr.splitlines()) == 1
