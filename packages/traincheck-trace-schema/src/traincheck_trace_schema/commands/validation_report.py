"""How `traincheck-schema validate` tells what it finds: for people, or one JSON object a line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs
import click

from traincheck_trace_schema.cli import fail, note, say
from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from pathlib import Path

    from traincheck_trace_schema.validation import FileCheck, Finding

_SHOWN: Final = 20  # problems of a file, and as many hints


@attrs.define
class Report:
    """Prints for people: the first findings of each file, then what the file is."""

    is_all: bool = False  # every finding is shown
    _counts: Counter[str] = attrs.field(init=False, factory=Counter)  # of the file at hand

    def finding(self, path: Path, finding: Finding) -> None:
        """Tell what was found in a file."""
        self._counts[finding.severity] += 1
        if self.is_all or self._counts[finding.severity] <= _SHOWN:
            label = "" if finding.severity == "problem" else f"{finding.severity}: "
            place = "" if finding.line is None else f":{finding.line}"
            say(f"{label}{path}{place}: {finding.what}")

    def file(self, check: FileCheck) -> None:
        """Sum up a file of which all was found."""
        for noun in ("problem", "hint"):
            if not self.is_all and (more := self._counts[noun] - _SHOWN) > 0:
                say(f"{check.path}: {_number(more, f'more {noun}')} (--all shows them)")
        problems, words = self._counts["problem"], [check.document] if check.document else []
        if check.is_lines:
            words.append(_number(check.records, "record" if check.document == "trace" else "line"))
        words += [_number(n, noun) for noun in ("problem", "hint") if (n := self._counts[noun])]
        words += check.notes
        say(f"{check.path}: {'not valid' if problems else 'valid'}: {', '.join(words)}")
        self._counts.clear()

    def error(self, path: Path, what: str) -> None:  # noqa: ARG002  the text names it
        """Tell why a file can't be validated."""
        self._counts.clear()
        fail(what)

    def note(self, path: Path, what: str) -> None:
        """Tell what is worth knowing about a file or a folder."""
        note(f"{path}: {what}")


@attrs.define
class JsonReport(Report):
    """Prints all that is found as JSON Lines: path, line (or null), severity, what."""

    def finding(self, path: Path, finding: Finding) -> None:
        """Tell what was found in a file."""
        self._tell(path, finding.line, finding.severity, finding.what)

    def file(self, check: FileCheck) -> None:
        """Tell how a file is that is neither right nor wrong by that: cut, or empty."""
        for what in check.notes:
            self.note(check.path, what)

    def error(self, path: Path, what: str) -> None:
        """Tell why a file can't be validated."""
        self._tell(path, None, "error", what)

    def note(self, path: Path, what: str) -> None:
        """Tell what is worth knowing about a file or a folder."""
        self._tell(path, None, "note", what)

    @staticmethod
    def _tell(path: Path, line: int | None, severity: str, what: str) -> None:
        click.echo(dumps({"path": str(path), "line": line, "severity": severity, "what": what}))


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
