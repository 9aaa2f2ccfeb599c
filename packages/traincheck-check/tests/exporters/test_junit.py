"""`--junit`, read back with the XML parser of Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import attrs

from traincheck_check.reporting.exporters.junit import JunitReporter
from traincheck_trace_schema.results_file import read_summary
from traincheck_trace_schema.suppression_file import write_suppressions
from traincheck_trace_schema.suppressions import Suppression

if TYPE_CHECKING:
    from conftest import Check, Start, WriteRun

    from traincheck_check.reporting.api import Report


def suites(path: str = "junit.xml") -> list[ET.Element]:
    root = ET.parse(path).getroot()  # noqa: S314  our own file
    assert root.tag == "testsuites"
    return root.findall("testsuite")


def cases(suite: ET.Element) -> dict[str, ET.Element]:
    """Return test cases by the id of the invariant, or by the whole name."""
    return {
        case.get("name", "").rpartition("[")[2].rstrip("]"): case
        for case in suite.findall("testcase")
    }


def test_an_invariant_is_a_test_case(run_check: Check, bad_run: Path) -> None:
    """What was broken failed with the diagnosis; what was not triggered is skipped, and why."""
    result = run_check("-f", bad_run, "--junit", "junit.xml")

    assert result.exit_code == 1, result.output
    (suite,) = suites()
    found = cases(suite)
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "1"}
    broken = found["moves-each"]
    assert (broken.get("file"), broken.get("line")) == ("train.py", "10")
    failure = broken.find("failure")
    assert failure is not None
    assert "model.fc2.weight" in failure.get("message", "")
    (group,) = read_summary(Path("results/violations_summary.json")).groups
    assert group.diagnosis in (failure.text or "")
    assert group.look_at in (failure.text or "")
    skipped = found["clips"].find("skipped")
    assert skipped is not None
    assert "never called" in skipped.get("message", "")
    assert not [*found["moves-some"]]
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["coverage/applied_pct"] == "75"


def test_a_run_is_a_suite(run_check: Check, bad_run: Path, write_run: WriteRun) -> None:
    """Runs that are checked together stand in one file."""
    run_check("-f", bad_run, write_run("good"), "--junit", "junit.xml")

    assert {each.get("name"): each.get("failures") for each in suites()} == {
        "bad": "1",
        "good": "0",
    }


def test_what_the_baseline_names_is_skipped_unless_it_fails(
    run_check: Check, bad_run: Path
) -> None:
    """A dashboard shows what makes the check fail."""
    write_suppressions(Path("known.json"), [Suppression(pattern="moves-each", reason="known")])
    args = ("-f", bad_run, "--baseline", "known.json", "--junit", "junit.xml")

    codes, kinds = [], []
    for more in ((), ("--fail-on", "any")):
        codes.append(run_check(*args, *more).exit_code)
        (suite,) = suites()
        kinds.append([child.tag for child in cases(suite)["moves-each"]])

    assert codes == [0, 1]
    assert kinds == [["skipped"], ["failure"]]


def test_a_trace_that_says_little_is_an_error(run_check: Check, write_run: WriteRun) -> None:
    """A file in which all that was judged passed would look like success."""
    run_check(*("-f", write_run(complete=False), "--min-coverage", "90"), *("--junit", "junit.xml"))

    (suite,) = suites()
    assert suite.get("errors") == "2"
    messages = [each.get("message", "") for each in suite.iter("error")]
    assert "footer" in messages[0] or "end" in messages[0]
    assert messages[1] == "3 of 4 applied"


def test_hostile_text_makes_no_other_document(live_reports: list[Report], start: Start) -> None:
    """Control characters and lone surrogates are no XML; markup is text."""
    text = "a\x00\x1b[31m\x0b\ud800\uffff</testcase>]]>&\"'\n<failure/>"
    report = live_reports[-1]
    outcome = report.outcome
    verdicts = tuple(
        attrs.evolve(each, text_description=text, relation=text) for each in outcome.failed
    )
    violations = tuple(
        attrs.evolve(each, happened=text, relation=text) for each in outcome.summary.violations
    )
    summary = attrs.evolve(outcome.summary, violations=violations)
    hostile = attrs.evolve(outcome, failed=verdicts, summary=summary)

    sink = start(JunitReporter(), "--junit", "junit.xml")
    sink.update(attrs.evolve(report, name=text, outcome=hostile, warnings=(text,)))
    sink.close()

    (suite,) = suites()
    shown = text.translate({0: "\\x00", 0x1B: "\\x1b", 0x0B: "\\x0b", 0xD800: "\\ud800"})
    shown = shown.replace("\uffff", "\\uffff")
    (failure,) = suite.iter("failure")
    assert suite.get("name") == shown
    assert failure.get("message") == shown
    assert suite.findtext("system-err") == shown


def test_of_a_live_run_the_last_report_counts(live_reports: list[Report], start: Start) -> None:
    """One suite, however often it was told."""
    sink = start(JunitReporter(), "--junit", "junit.xml")
    for report in live_reports:
        sink.update(report)
    sink.close()

    (suite,) = suites()
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["violations/total"] == "5"


def test_a_place_that_can_not_be_written_to_is_told_at_once(
    run_check: Check, bad_run: Path
) -> None:
    """Before anything is checked, in one line."""
    Path("file").touch()

    result = run_check("-f", bad_run, "--junit", "file/junit.xml")

    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: file/junit.xml")
    assert len(result.stderr.splitlines()) == 1
    assert not Path("results/violations_summary.json").exists()
