"""From what on a check fails: any, new or so many broken invariants; how much has to apply."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from traincheck_check.commands.check import check
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_trace_schema.results_file import read_summary
from traincheck_trace_schema.suppression_file import read_suppressions, write_suppressions
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from click.testing import Result
    from conftest import WriteRun

FC1, FC2 = "model.fc1.weight", "model.fc2.weight"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*args: object) -> Result:
    return CliRunner().invoke(check, [*map(str, args), "-o", "results"])


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """Return a baseline that knows of one of the invariants that a stuck run breaks."""
    path = tmp_path / "baseline.jsonl"
    write_suppressions(path, [Suppression(pattern="moves-each", reason="fc2 is frozen for now")])
    return path


@pytest.mark.parametrize(
    ("options", "stuck", "code"),
    [
        ((), [FC2], 1),
        (("--baseline",), [FC2], 0),
        (("--baseline", "--fail-on", "new"), [FC2], 0),
        (("--baseline", "--fail-on", "any"), [FC2], 1),
        (("--baseline",), [FC1, FC2], 1),  # that none moves is new
        (("--fail-on", "2"), [FC2], 0),
        (("--fail-on", "2"), [FC1, FC2], 1),
        (("--baseline", "--fail-on", "2"), [FC1, FC2], 0),
        (("--exit-zero",), [FC2], 0),
        (("--min-coverage", "75"), [], 0),
        (("--min-coverage", "76"), [], 3),
        (("--min-coverage", "76"), [FC2], 1),
        (("--min-coverage", "76", "--exit-zero"), [], 0),
    ],
)
def test_what_makes_a_check_fail(  # noqa: PLR0913, PLR0917  fixtures, and what differs
    write_run: WriteRun,
    claims_file: Path,
    baseline: Path,
    options: tuple[str, ...],
    stuck: list[str],
    code: int,
) -> None:
    """One of four invariants never applies, so three quarters do."""
    given = [each if each != "--baseline" else f"--baseline={baseline}" for each in options]

    result = run("-f", write_run(stuck=stuck), "-i", claims_file, *given)

    assert result.exit_code == code, result.output


def test_what_a_baseline_knows_is_told_as_known(
    write_run: WriteRun, claims_file: Path, baseline: Path
) -> None:
    """It is checked, unlike what is suppressed, and marked wherever it is told."""
    result = run("-f", write_run(stuck=[FC2]), "-i", claims_file, "--baseline", baseline)

    assert result.stdout.splitlines()[0].endswith(": 1 broken, 1 of them known.")
    summary = read_summary(Path("results/violations_summary.json"))
    assert (summary.checked, summary.failed, summary.known) == (4, 1, 1)
    assert [each.known for each in summary.violations] == [True]


def test_what_is_broken_now_can_be_the_next_baseline(
    write_run: WriteRun, claims_file: Path, baseline: Path
) -> None:
    """What was known keeps its reason; the next check of the same run fails no more."""
    given = ("-f", write_run(stuck=[FC1, FC2]), "-i", claims_file)

    first = run(*given, "--baseline", baseline, "--write-baseline", "next.jsonl")
    second = run(*given, "--baseline", "next.jsonl")

    assert (first.exit_code, second.exit_code) == (1, 0)
    reasons = {each.pattern: each.reason for each in read_suppressions(Path("next.jsonl"))}
    assert reasons.pop("moves-each") == "fc2 is frozen for now"
    assert list(reasons) == ["moves-some"]
    assert reasons["moves-some"].startswith("broken in run run: ")


def test_too_little_that_applied_is_said_in_the_first_line(
    write_run: WriteRun, claims_file: Path
) -> None:
    """Who asked for it reads why the check failed."""
    result = run("-f", write_run(), "-i", claims_file, "--min-coverage", "90")

    assert "at least 90 % have to apply" in result.stdout.splitlines()[0]


def test_a_run_in_which_nothing_could_be_judged_is_no_success(
    tmp_path: Path, claims_file: Path
) -> None:
    """It ended before the training began, say."""
    trace = TraceBuilder(tmp_path / "trace")
    trace.rank().step(0)
    trace.write()

    assert run("-f", "trace", "-i", claims_file).exit_code == 3
    assert run("-f", "trace", "-i", claims_file, "--exit-zero").exit_code == 0


@pytest.mark.parametrize("value", ["none", "0", "-1", "1.5"])
def test_a_wrong_threshold_is_refused(write_run: WriteRun, claims_file: Path, value: str) -> None:
    """In one line that says what may be given."""
    result = run("-f", write_run(), "-i", claims_file, f"--fail-on={value}")

    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "neither 'any' nor 'new' nor a number from 1 on" in line


def test_bad_input_exits_with_2_whatever_is_asked_for(claims_file: Path) -> None:
    """A check that did not take place is no success."""
    Path("empty").mkdir()

    assert run("-f", "empty", "-i", claims_file, "--exit-zero").exit_code == 2


def test_what_an_earlier_check_wrote_is_not_taken_for_new(
    write_run: WriteRun, claims_file: Path
) -> None:
    """Its report and its summary are gone, and that is told."""
    good, stuck = write_run("good"), write_run("stuck", stuck=[FC2])
    run("-f", stuck, "-i", claims_file)
    assert Path("results/report.html").exists()

    result = run("-f", good, "-i", claims_file, "--no-html-report")

    assert "note: results had results of an earlier check, which are replaced" in result.stderr
    assert "The report is" not in result.stdout
    assert not Path("results/report.html").exists()
    run("-f", good, stuck, "-i", claims_file)
    assert sorted(path.name for path in Path("results").iterdir()) == [
        "good",
        "report.html",
        "stuck",
    ]


def test_results_stay_where_a_check_did_not_take_place(
    write_run: WriteRun, claims_file: Path
) -> None:
    """The input was unusable; nothing was found that could take their place."""
    run("-f", write_run(), "-i", claims_file)
    Path("empty").mkdir()

    assert run("-f", "empty", "-i", claims_file).exit_code == 2

    assert read_summary(Path("results/violations_summary.json")).passed == 3
