"""Result files: the summary, and the verdicts one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import read_json, read_json_lines, write_json, write_json_lines
from traincheck_trace_schema.results import SCHEMA, VERSION, Summary, Verdict
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SUMMARY_NAME = "violations_summary.json"
FAILED_NAME = "failed.log"
PASSED_NAME = "passed.log"
NOT_TRIGGERED_NAME = "not_triggered.log"
REPORT_NAME = "report.html"  # all of it, for people

T = TypeVar("T", Summary, Verdict)


def write_summary(path: Path, summary: Summary) -> None:
    """Write the summary of a check."""
    write_json(path, summary)


def read_summary(path: Path) -> Summary:
    """Read the summary of a check.

    Raises:
        ConfigError: the file cannot be read, or is no summary.
    """
    return _result(Summary, read_json(path, error=ConfigError), str(path))


def write_verdicts(path: Path, verdicts: Iterable[Verdict]) -> None:
    """Write verdicts."""
    write_json_lines(path, verdicts)


def read_verdicts(path: Path) -> list[Verdict]:
    """Read verdicts.

    Raises:
        ConfigError: the file cannot be read, or a line is no verdict.
    """
    lines = read_json_lines(path, error=ConfigError)
    return [_result(Verdict, line, where) for where, line in lines]


def _result(cls: type[T], document: Any, where: str) -> T:
    check_version(document, schema=SCHEMA, known=VERSION, where=where, error=ConfigError)
    return structure(cls, document, where=where, error=ConfigError)
