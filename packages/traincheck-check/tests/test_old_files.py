"""Checking reads what TrainCheck 0.x wrote, and says what of it can't be checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from traincheck_check.commands.check import check
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_trace_schema.legacy.testing import OldTrace
from traincheck_trace_schema.results_file import read_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import WriteRun


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(check, [*map(str, args), "-o", "results"])


def contains(parent: str, child: str, relation: str = "APIContainRelation") -> dict[str, Any]:
    """Return an invariant as 0.x wrote it."""
    params = [{"param_type": "APIParam", "api_full_name": name} for name in (parent, child)]
    return {"text_description": "", "relation": relation, "params": params, "precondition": {}}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def old_trace(tmp_path: Path) -> Path:
    """Write a trace of 0.x in which each step of an optimizer makes a private call."""
    trace = OldTrace(tmp_path / "old")
    thread = trace.thread()
    thread.at(stage="training")
    for step in (1, 2, 3):
        thread.at(step=step)
        with thread.call("torch.optim.sgd.SGD.step", address=1):
            if step < 3:
                with thread.call("torch.optim.sgd._single_tensor_sgd"):
                    pass
    return trace.write()


def test_old_invariants_are_checked_on_an_old_trace(old_trace: Path, tmp_path: Path) -> None:
    """By the names that 0.x gave; the step is told as 1.0 counts."""
    claims = write(
        tmp_path / "old.json",
        contains("torch.optim.sgd.SGD.step", "torch.optim.sgd._single_tensor_sgd"),
        contains("torch.optim.optimizer.Optimizer.zero_grad", "f"),
    )

    result = run("-f", old_trace, "-i", claims)

    assert result.exit_code == 1, result.output
    assert result.stdout.splitlines()[0] == "1 of 2 invariants applied (50 %): 1 broken."
    assert "torch.optim.SGD.step returned without calling" in result.stdout
    assert "step 2 (training)" in result.stdout
    assert "is a trace of TrainCheck 0.x" in result.stderr


def test_a_cut_file_of_0_x_exits_with_3(old_trace: Path, tmp_path: Path) -> None:
    """The file and the line are told."""
    (api,) = old_trace.iterdir()
    api.write_bytes(api.read_bytes()[:-9])
    claims = write(tmp_path / "old.json", contains("f", "g"))

    result = run("-f", old_trace, "-i", claims)

    assert result.exit_code == 3, result.output
    assert f"{api}:10: the last line is cut" in result.stderr


def test_relations_that_are_not_installed_are_told_and_counted(
    write_run: WriteRun, tmp_path: Path
) -> None:
    """They are not triggered, with the reason; the others are checked."""
    step = "torch.optim.SGD.step"
    claims = write(
        tmp_path / "old.json",
        contains(step, "f", "MoodRelation"),
        contains(step, "g", "MoodRelation"),
        contains("f", "g"),
    )

    result = run("-f", write_run(), "-i", claims)

    assert result.exit_code == 3, result.output
    assert "warning: not checked: 2 invariants: relation 'MoodRelation'" in result.stderr
    reasons = [each.reason for each in read_verdicts(tmp_path / "results" / "not_triggered.log")]
    assert sorted(reasons) == [
        "f was never called, or not recorded",
        *["it can't be checked: relation 'MoodRelation' is not installed"] * 2,
    ]


def test_if_none_can_be_checked_the_command_names_the_relations(
    write_run: WriteRun, tmp_path: Path
) -> None:
    """That is unusable input."""
    claims = write(tmp_path / "old.json", contains("f", "g", "MoodRelation"))

    result = run("-f", write_run(), "-i", claims)

    assert result.exit_code == 2
    assert "None of the invariants can be checked" in result.stderr
    assert "relation 'MoodRelation' is not installed" in result.stderr


def test_what_can_not_be_expressed_is_told_by_file_and_line(
    write_run: WriteRun, tmp_path: Path
) -> None:
    """A process of the run that it was learnt from, say."""
    bound = contains("f", "g")
    clause = {"type": "constant", "prop_name": "process_id", "values": [7]}
    group = {"inverted": False, "preconditions": [{"clauses": [clause]}]}
    bound["precondition"] = {"parent_func_call_pre": group}
    claims = write(tmp_path / "old.json", contains("f", "g"), bound)

    result = run("-f", write_run(), "-i", claims)

    assert result.exit_code == 3, result.output
    assert f"note: {claims}:2: left out, it can't be expressed" in result.stderr


def test_a_function_that_is_not_recorded_is_no_violation(tmp_path: Path) -> None:
    """1.0 does not record private functions of torch, which 0.x did."""
    step, private = "torch.optim.SGD.step", "torch.optim.sgd._single_tensor_sgd"
    trace = TraceBuilder(
        tmp_path / "run", recording={"mode": "full", "functions": [step, "torch.f"]}
    )
    rank = trace.rank()
    rank.step(0)
    with rank.call(step):
        pass
    trace.write()
    claims = write(
        tmp_path / "old.json",
        contains(step, private),
        contains(step, "torch.f"),
    )

    result = run("-f", tmp_path / "run", "-i", claims)

    assert result.exit_code == 1, result.output
    (failed,) = read_verdicts(tmp_path / "results" / "failed.log")
    assert "torch.f" in failed.text_description
    (silent,) = read_verdicts(tmp_path / "results" / "not_triggered.log")
    assert silent.reason == f"it can't be checked: {private} is not recorded in this trace"
