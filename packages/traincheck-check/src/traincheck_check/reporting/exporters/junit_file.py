"""JUnit XML: a suite a run, a case an invariant, for whatever reads the results of tests.

What readers understand: github.com/testmoapp/junitxml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import attrs

from traincheck_check.judging.exit_code import Threshold
from traincheck_check.reporting.api import Report
from traincheck_check.reporting.exporters.metrics import metrics_of
from traincheck_trace_schema.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_check.judging.outcome import Outcome
    from traincheck_trace_schema.results import Verdict, Violation

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML 1.0
_KNOWN = "broken, and known: the baseline names it"


@attrs.define
class JunitFile:
    """Keeps the latest of each run, and writes the file when runs are over."""

    _path: Path
    _limits: Threshold
    _reports: dict[str, Report] = attrs.field(factory=dict)

    def update(self, report: Report) -> None:
        """Keep the latest of a run."""
        self._reports[report.name] = report

    def close(self) -> None:
        """Write what is known."""
        self.write()

    def write(self) -> None:
        """Write the file, at once.

        Raises:
            ConfigError: It can't be written.
        """
        suites = [self._suite(report) for report in self._reports.values()]
        root = Element("testsuites", {"name": "TrainCheck", **_totals(suites)})
        root.extend(suites)
        indent(root)
        text = tostring(root, encoding="unicode")
        write_atomically(self._path, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n')

    def _suite(self, report: Report) -> Element:
        outcome = report.outcome
        cases = [*self._cases(outcome), *_about_trace(outcome, self._limits)]
        counts = {
            "tests": len(cases),
            "failures": sum(case.find("failure") is not None for case in cases),
            "errors": sum(case.find("error") is not None for case in cases),
            "skipped": sum(case.find("skipped") is not None for case in cases),
        }
        name = _legal(report.name or "traincheck")
        suite = Element("testsuite", {"name": name, **{key: str(n) for key, n in counts.items()}})
        properties = SubElement(suite, "properties")
        for key, value in _properties(report):
            SubElement(properties, "property", name=_legal(key), value=_legal(value))
        suite.extend(cases)
        if report.warnings:
            SubElement(suite, "system-err").text = _legal("\n".join(report.warnings))
        return suite

    def _cases(self, outcome: Outcome) -> Iterator[Element]:
        broken = {each.invariant_id: each for each in outcome.summary.violations}
        for verdict in (*outcome.failed, *outcome.passed, *outcome.not_triggered):
            case = _case(verdict)
            if (violation := broken.get(verdict.invariant_id)) is not None:
                _tell_violation(case, violation, outcome, is_failure=self._is_failure(violation))
            elif verdict.verdict == "not_triggered":
                _add(case, "skipped", message=verdict.reason)
            yield case

    def _is_failure(self, violation: Violation) -> bool:
        return self._limits.fail_on == "any" or not violation.known


def _case(verdict: Verdict) -> Element:
    name = f"{verdict.text_description} [{verdict.invariant_id}]"
    return Element("testcase", classname=_legal(verdict.relation), name=_legal(name))


def _tell_violation(
    case: Element, violation: Violation, outcome: Outcome, *, is_failure: bool
) -> None:
    """Say what happened, and what the group of the violation says of it."""
    file, _, line = (violation.first.source or "").rpartition(":")
    if file and line.isdecimal():
        case.set("file", _legal(file))
        case.set("line", line)
    group = outcome.summary.groups[violation.group]
    what = violation.happened or f"Broken: {violation.text_description}"
    text = "\n".join((group.title, group.diagnosis, f"Look at: {group.look_at}"))
    if is_failure:
        _add(case, "failure", message=what, type=violation.relation).text = _legal(text)
    else:
        _add(case, "skipped", message=f"{_KNOWN}. {what}").text = _legal(text)


def _about_trace(outcome: Outcome, limits: Threshold) -> Iterator[Element]:
    """Yield what is wrong with the trace: without it, nothing broken would look like success."""
    summary = outcome.summary
    applied = summary.failed + summary.passed
    if not summary.complete:
        case = Element("testcase", classname="trace", name="The trace is complete")
        _add(case, "error", message="; ".join(summary.incomplete_because), type="incomplete")
        yield case
    if not applied or not limits.is_covered(outcome):
        case = Element("testcase", classname="trace", name="Enough invariants applied")
        _add(case, "error", message=f"{applied} of {summary.checked} applied", type="coverage")
        yield case


def _add(case: Element, kind: str, **attributes: str) -> Element:
    return SubElement(case, kind, {key: _legal(value) for key, value in attributes.items()})


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    summary = report.outcome.summary
    yield "results", str(report.folder)
    yield from (("run_id", each) for each in summary.run_ids)
    for name, value in metrics_of(summary).items():
        yield name, f"{value:.6g}"
    for each in summary.suppressions:
        yield "suppressed", f"{len(each.invariant_ids)} ({each.pattern}): {each.reason}"


def _totals(suites: Sequence[Element]) -> dict[str, str]:
    names = ("tests", "failures", "errors", "skipped")
    return {name: str(sum(int(suite.get(name, "0")) for suite in suites)) for name in names}


def _legal(text: str) -> str:
    """Escape what no XML document may hold."""
    return _ILLEGAL.sub(lambda match: repr(match[0])[1:-1], text)
