"""The command line of checking: exit codes, files, the first screen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from traincheck_check.commands.check import check
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.suppression_file import suppression_path, write_suppressions
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from conftest import WriteRun

FC1, FC2 = "model.fc1.weight", "model.fc2.weight"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(check, list(map(str, args)))


def suppress(claims_file: Path, *suppressions: tuple[str, str]) -> None:
    write_suppressions(
        suppression_path(claims_file),
        [Suppression(pattern=pattern, reason=reason) for pattern, reason in suppressions],
    )


def test_no_violation_exits_with_0(write_run: WriteRun, claims_file: Path) -> None:
    """The first line says how much applied, then the verdict."""
    result = run("-f", write_run(), "-i", claims_file, "-o", "results")

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "3 of 4 invariants applied (75 %): no violation."


def test_violations_exit_with_1_and_are_told_in_words(
    write_run: WriteRun, claims_file: Path
) -> None:
    """The top finding names the parameter, the call and the step; the logs hold the rest."""
    folder = write_run(stuck=[FC2], since=4)

    result = run("-f", folder, "-i", claims_file, "-o", "results")

    assert result.exit_code == 1, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "3 of 4 invariants applied (75 %): 1 broken."
    (title,) = (line for line in lines if line.startswith("1. "))
    assert "torch.optim.SGD.step" in title
    assert FC2 in title
    assert "step 4 (training)" in result.stdout
    assert "train.py:10" in result.stdout
    assert lines[-2].startswith("Results are in results: ")
    assert lines[-1] == "The report is results/report.html"


def test_an_incomplete_trace_exits_with_3(write_run: WriteRun, claims_file: Path) -> None:
    """No violation was found, but not all was seen."""
    result = run("-f", write_run(complete=False), "-i", claims_file, "-o", "results")

    assert result.exit_code == 3, result.output
    assert "but the trace is incomplete" in result.stdout.splitlines()[0]


def test_a_violation_in_an_incomplete_trace_exits_with_1(
    write_run: WriteRun, claims_file: Path
) -> None:
    """A violation is one, whatever is missing."""
    folder = write_run(stuck=[FC1], complete=False)

    assert run("-f", folder, "-i", claims_file, "-o", "results").exit_code == 1


def test_the_files_hold_the_verdicts(write_run: WriteRun, claims_file: Path) -> None:
    """Each verdict stands in its log, and the summary counts them."""
    run("-f", write_run(stuck=[FC2]), "-i", claims_file, "-o", "results")

    results = Path("results")
    summary = read_summary(results / "violations_summary.json")
    logs = {
        name: read_verdicts(results / f"{name}.log")
        for name in ("failed", "passed", "not_triggered")
    }
    assert {name: len(log) for name, log in logs.items()} == {
        "failed": 1,
        "passed": 2,
        "not_triggered": 1,
    }
    assert (summary.failed, summary.passed, summary.not_triggered) == (1, 2, 1)
    assert logs["failed"][0].evidence
    assert logs["not_triggered"][0].reason


def test_several_runs_get_folders_of_their_own(write_run: WriteRun, claims_file: Path) -> None:
    """Results are named after the folder of the run; the worst decides on the exit code."""
    good, bad = write_run("good"), write_run("bad", stuck=[FC1])

    result = run("-f", good, bad, "-i", claims_file, "-o", "results")

    assert result.exit_code == 1
    failed = {
        name: read_summary(Path("results") / name / "violations_summary.json").failed
        for name in ("good", "bad")
    }
    assert failed == {"good": 0, "bad": 1}


def test_a_trace_does_not_choose_where_results_go(tmp_path: Path, claims_file: Path) -> None:
    """A run id may hold anything; folders of one name are numbered."""
    folders = []
    for place, run_id in (("a", "one"), ("b", "../../elsewhere")):
        trace = TraceBuilder(tmp_path / place / "t", run_id=run_id)
        train(trace.rank(), 6)
        folders.append(trace.write().parent)

    run("-f", *folders, "-i", claims_file, "-o", "results")

    assert sorted(path.name for path in Path("results").iterdir()) == ["report.html", "t", "t-2"]


def test_results_have_a_place_by_default(write_run: WriteRun, claims_file: Path) -> None:
    """Without -o they go into a folder that is named after the time."""
    run("-f", write_run(), "-i", claims_file)

    (folder,) = Path.cwd().glob("traincheck_checker_results_*")
    assert (folder / "violations_summary.json").exists()


def test_checking_again_gives_the_same_files(write_run: WriteRun, claims_file: Path) -> None:
    """Verdicts do not depend on the time or on anything else outside of the input."""
    folder = write_run(stuck=[FC1, FC2])

    for name in ("one", "other"):
        run("-f", folder, "-i", claims_file, "-o", name)

    one, other = (
        {path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("one", "other")
    )
    assert one == other


def test_another_tracker_is_warned_of(write_run: WriteRun, claims_file: Path) -> None:
    """What one tracker sees, another may not."""
    result = run("-f", write_run(tracker="sampler"), "-i", claims_file, "-o", "results")

    assert "warning: invariants were inferred with tracker subclass" in result.stderr
    assert "sampler" in result.stderr


def test_a_trace_without_steps_is_warned_of(tmp_path: Path, claims_file: Path) -> None:
    """That nothing is broken says little there."""
    trace = TraceBuilder(tmp_path / "trace")
    with trace.rank().call("torch.relu"):
        pass
    trace.write()

    result = run("-f", "trace", "-i", claims_file, "-o", "results")

    assert result.exit_code == 3, result.output
    assert "warning: no training step is recorded" in result.stderr


def test_what_is_suppressed_is_not_evaluated_and_told(
    write_run: WriteRun, claims_file: Path
) -> None:
    """Neither is it broken nor does it count; the screen and the summary say why."""
    suppress(claims_file, ("moves-*", "fc2 is frozen on purpose"), ("clips", "we do not clip"))

    result = run("-f", write_run(stuck=[FC2]), "-i", claims_file, "-o", "results")

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "1 of 1 invariants applied (100 %): no violation."
    assert lines[1].strip() == "2 suppressed: fc2 is frozen on purpose"
    assert lines[2].strip() == "1 suppressed: we do not clip"
    summary = read_summary(Path("results/violations_summary.json"))
    assert (summary.checked, summary.suppressed) == (1, 3)
    assert {(each.reason, each.invariant_ids) for each in summary.suppressions} == {
        ("fc2 is frozen on purpose", ("moves-each", "moves-some")),
        ("we do not clip", ("clips",)),
    }


def test_what_the_command_suppresses_is_not_checked(write_run: WriteRun, claims_file: Path) -> None:
    """As a user does it: suppress what is known, check again, and have it back."""
    commands = Path(sys.executable).parent
    folder = write_run(stuck=[FC2])
    suppress_ = [commands / "traincheck", "invariants", "suppress", claims_file, "moves-each"]
    check_ = [commands / "traincheck-check", "-f", folder, "-i", claims_file, "-o", "results"]

    codes = [
        subprocess.run(command, capture_output=True, check=False).returncode
        for command in (
            check_,
            [*suppress_, "--reason", "fc2 is frozen on purpose"],
            check_,
            [*suppress_, "--remove"],
            check_,
        )
    ]

    assert codes == [1, 0, 0, 0, 1]


def test_suppressions_can_be_ignored(write_run: WriteRun, claims_file: Path) -> None:
    """Then everything is checked, and nothing is told of them."""
    suppress(claims_file, ("moves-*", "fc2 is frozen on purpose"))
    folder = write_run(stuck=[FC2])

    result = run("-f", folder, "-i", claims_file, "-o", "results", "--ignore-suppressions")

    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("3 of 4 invariants applied (75 %): 1 broken.")
    assert "suppressed" not in result.stdout
    assert read_summary(Path("results/violations_summary.json")).suppressed == 0


def test_suppressions_beside_any_file_hold_for_all(
    write_run: WriteRun, claims_file: Path, tmp_path: Path
) -> None:
    """The same invariant may stand in several files."""
    other = tmp_path / "other.json"
    other.write_bytes(claims_file.read_bytes())
    suppress(other, ("moves-each", "known"))

    result = run("-f", write_run(stuck=[FC2]), "-i", claims_file, other, "-o", "results")

    assert result.exit_code == 0, result.output
    assert "1 suppressed: known" in result.stdout


@pytest.mark.parametrize(
    ("pattern", "reason"), [("*", "every invariant is suppressed; "), ("", "'pattern' must be")]
)
def test_suppressions_that_leave_nothing_or_are_broken_are_told(
    write_run: WriteRun, claims_file: Path, pattern: str, reason: str
) -> None:
    """That nothing is broken would say nothing."""
    suppress(claims_file, (pattern, "all known"))

    result = run("-f", write_run(), "-i", claims_file, "-o", "results")

    assert result.exit_code == 2, result.output
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["-i", "invariants.json"],
        ["-f", "run"],
        ["-f", "run", "-i", "missing.json"],
        ["-f", "run", "-i", "broken.json"],
        ["-f", "run", "-i", "empty.json"],
        ["-f", "empty", "-i", "invariants.json"],
        ["-f", "run", "-i", "invariants.json", "-o", "empty.json/results"],
    ],
)
def test_unusable_input_gets_one_line_and_exit_code_2(
    write_run: WriteRun, claims_file: Path, args: list[str]
) -> None:
    """Missing or broken traces and invariants, and a place that cannot be written to."""
    write_run()
    Path("empty").mkdir()
    Path("empty.json").touch()
    Path("broken.json").write_text(claims_file.read_text() + "not json\n")

    result = run(*args)

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_help_imports_neither_numpy_nor_torch() -> None:
    """The command answers at once, and works where torch is not installed."""
    code = (
        "import sys; from traincheck_check.commands.check import check; "
        "check(['--help'], standalone_mode=False); "
        "import traincheck_check.judging.judge, traincheck_check.reporting.screen; "
        "print({'numpy', 'torch'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("command", ["check", "onlinecheck"])
def test_help_answers_at_once(command: str) -> None:
    """What checks, reports or reads is imported when it is needed."""
    code = (
        f"import sys; from traincheck_check.commands.{command} import {command}; "
        f"{command}(['--help'], standalone_mode=False); "
        "print({'cattrs', 'jinja2', 'numpy', 'traincheck_relations'} & set(sys.modules))"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert "--report-tensorboard" in result.stdout
    assert result.stdout.splitlines()[-1] == "set()"
