"""Validates a file, whatever document it is."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.validation.fields import FieldHints
from traincheck_trace_schema.validation.finding import Finding
from traincheck_trace_schema.validation.folder import SHARDS, is_named_as
from traincheck_trace_schema.validation.meaning import class_of, problems_within
from traincheck_trace_schema.validation.recognition import is_old_invariant, recognise
from traincheck_trace_schema.validation.record import RecordTest
from traincheck_trace_schema.validation.run import ShardFacts
from traincheck_trace_schema.validation.schema import DOCUMENTS, problem_of
from traincheck_trace_schema.validation.shape import beginning, why_no_lines
from traincheck_trace_schema.validation.shard import ShardRules
from traincheck_trace_schema.validation.text import Line, Lines
from traincheck_trace_schema.version import check_version, is_newer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OLD: Final = (
    "is of TrainCheck 0.x, which is read as it is; "
    "for version 1.0: traincheck-schema migrate IN OUT"
)
_UNNAMED: Final = (
    "readers of a folder pass over a trace of this name; they take trace_*.json and trace_*.json.gz"
)


@attrs.define
class FileCheck:
    """The validation of one file; what it is and how much is in it is known after `findings`."""

    path: Path
    document: str = attrs.field(init=False, default="")  # "": none of ours
    is_lines: bool = attrs.field(init=False, default=False)  # JSON Lines, not one document
    records: int = attrs.field(init=False, default=0)  # lines of it
    is_newer: bool = attrs.field(init=False, default=False)  # than the version known here
    shard: ShardFacts | None = attrs.field(init=False, default=None)  # for the rules of a run
    _is_foreign: bool = attrs.field(init=False, default=False)  # of another schema or major version
    notes: list[str] = attrs.field(init=False, factory=list)  # worth telling, and no problem

    def problems(self) -> Iterator[Finding]:
        """Yield what is not valid; see `findings`."""
        return (found for found in self.findings() if found.severity == "problem")

    def findings(self) -> Iterator[Finding]:
        """Yield problems and hints, in the order of the file; memory does not depend on its size.

        Raises:
            TraceError: the file cannot be read.
            ConfigError: jsonschema-rs is not installed.
        """
        lines = Lines(self.path)
        following = iter(lines)
        first = next(following, None)
        is_named = is_named_as(self.path, *SHARDS)
        if first is not None:
            yield from self._from(first, following)
        if self.document == "trace" and not is_named:
            yield Finding(None, _UNNAMED, "hint")
        if lines.problem:
            yield Finding(None, lines.problem)
        elif first is None and is_named:
            self.notes.append("its process ended before it wrote its header")
        elif lines.is_cut and (self.document == "trace" or is_named):
            self.notes.append("cut in its last line")
        elif lines.is_cut and (self.is_lines or first is None):
            yield Finding(self.records + 1, "is cut, or no line of a document of TrainCheck")
        elif first is None:
            self.notes.append("empty")

    def _from(self, first: Line, following: Iterator[Line]) -> Iterator[Finding]:
        found = recognise(self.path, first)
        self.document = found.document
        if found.whole:
            yield from self._document(found.whole, None)
        elif self.document == "trace":
            head = [first, *beginning(first, following)]
            if problem := why_no_lines(self.path, head):
                yield Finding(1, problem)
                return
            self.is_lines = True
            yield from self._shard(chain(head, following))
        elif self.document:
            self.is_lines = True
            yield from self._each(chain([first], following))
        else:
            old = is_legacy_file(self.path)
            yield Finding(1, _OLD if old else "is no document of TrainCheck: no 'schema' says so")

    def _shard(self, lines: Iterable[Line]) -> Iterator[Finding]:
        test, rules, fields = RecordTest(), ShardRules(), FieldHints()
        for line in lines:
            self.records += 1
            if line.number == 1 and _is_header(line):
                if problem := self._version(line.parsed):
                    yield Finding(1, problem)
                    return
                test.is_newer = self.is_newer
            if what := line.problem or test.problem_of(line):
                rules.miss()
                yield Finding(line.number, what)
                continue
            problems, hints = rules.take(line.parsed)
            if not self.is_newer:  # which may have more fields
                hints += fields.of(line.parsed)
            for what in problems:
                yield Finding(line.number, what)
            for what in hints:
                yield Finding(line.number, what, "hint")
        if rules.header:
            self.shard = ShardFacts.of(
                self.path, rules.header, last_ns=rules.last_ns, steps=rules.counts["step"]
            )

    def _each(self, lines: Iterable[Line]) -> Iterator[Finding]:
        has_old = False
        for line in lines:
            self.records += 1
            if line.problem == "is empty" or (has_old and _is_old(line)):
                continue
            yield from self._document(line, line.number)
            has_old |= _is_old(line)
            if self._is_foreign:
                return

    def _document(self, line: Line, number: int | None) -> Iterator[Finding]:
        for what in self._problems_of(line):
            yield Finding(number, what)

    def _problems_of(self, line: Line) -> Iterator[str]:
        parsed = line.parsed
        if line.problem or not isinstance(parsed, dict):
            yield line.problem or "must be an object"
        elif _is_old(line):
            yield _OLD
        elif problem := self._version(parsed):
            yield problem
        else:
            try:
                document = structure(class_of(self.document, parsed), parsed)
            except TraincheckError as error:
                yield str(error)
                return
            if wrong := problem_of(self.document, parsed):
                yield wrong
            elif not self.is_newer:  # what is not known here may be part of the id
                yield from problems_within(document)

    def _version(self, parsed: dict[str, Any]) -> str:
        """Say why the version cannot be validated here; note that it is a newer one."""
        document, where = DOCUMENTS[self.document], "it"
        try:
            check_version(
                parsed,
                schema=document.schema,
                known=document.version,
                where=where,
                error=document.error,
            )
        except TraincheckError as error:
            self._is_foreign = True
            return str(error).removeprefix(f"{where}: ")
        version = parsed["version"]
        if is_newer(version, document.version) and not self.is_newer:
            self.is_newer = True
            self.notes.append(f"is version {version}: what is not in {document.version} is passed")
        return ""


def _is_header(line: Line) -> bool:
    return isinstance(line.parsed, dict) and line.parsed.get("kind") == "header"


def _is_old(line: Line) -> bool:
    return isinstance(line.parsed, dict) and is_old_invariant(line.parsed)
