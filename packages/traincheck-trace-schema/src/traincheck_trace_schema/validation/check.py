"""Validates a file, whatever document it is."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.validation.folder import SHARDS, is_named_as
from traincheck_trace_schema.validation.meaning import class_of, problems_within
from traincheck_trace_schema.validation.recognition import is_old_invariant, recognise
from traincheck_trace_schema.validation.record import RecordTest
from traincheck_trace_schema.validation.schema import DOCUMENTS, problem_of
from traincheck_trace_schema.validation.shard import ShardRules
from traincheck_trace_schema.validation.text import Line, Lines
from traincheck_trace_schema.version import check_version, is_newer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OLD: Final = (
    "is of TrainCheck 0.x, which is read as it is; "
    "for version 1.0: traincheck-schema migrate IN OUT"
)


@attrs.frozen
class Problem:
    """What is not valid, and in which line; None: the file as a whole."""

    line: int | None
    what: str


@attrs.define
class FileCheck:
    """The validation of one file; what it is and how much is in it is known after `problems`."""

    path: Path
    document: str = attrs.field(init=False, default="")  # "": none of ours
    is_lines: bool = attrs.field(init=False, default=False)  # JSON Lines, not one document
    records: int = attrs.field(init=False, default=0)  # lines of it
    is_newer: bool = attrs.field(init=False, default=False)  # than the version known here
    _is_foreign: bool = attrs.field(init=False, default=False)  # of another schema or major version
    notes: list[str] = attrs.field(init=False, factory=list)  # worth telling, and no problem

    def problems(self) -> Iterator[Problem]:
        """Yield what is not valid, in the order of the file; memory does not depend on its size.

        Raises:
            TraceError: the file cannot be read.
            ConfigError: jsonschema-rs is not installed.
        """
        lines = Lines(self.path)
        following = iter(lines)
        first = next(following, None)
        if first is not None:
            yield from self._from(first, following)
        if lines.problem:
            yield Problem(None, lines.problem)
        elif lines.is_cut and (self.document == "trace" or is_named_as(self.path, *SHARDS)):
            self.notes.append("cut in its last line" if first else "cut in its first line")
        elif lines.is_cut and (self.is_lines or first is None):
            yield Problem(self.records + 1, "is cut, or no line of a document of TrainCheck")
        elif first is None:
            self.notes.append("empty")

    def _from(self, first: Line, following: Iterator[Line]) -> Iterator[Problem]:
        found = recognise(self.path, first)
        self.document = found.document
        if found.whole:
            yield from self._document(found.whole, None)
        elif self.document == "trace":
            self.is_lines = True
            yield from self._shard(chain([first], following))
        elif self.document:
            self.is_lines = True
            yield from self._each(chain([first], following))
        else:
            old = is_legacy_file(self.path)
            yield Problem(1, _OLD if old else "is no document of TrainCheck: no 'schema' says so")

    def _shard(self, lines: Iterable[Line]) -> Iterator[Problem]:
        test, rules = RecordTest(), ShardRules()
        for line in lines:
            self.records += 1
            if line.number == 1 and _is_header(line):
                if problem := self._version(line.parsed):
                    yield Problem(1, problem)
                    return
                test.is_newer = self.is_newer
            if what := line.problem or test.problem_of(line):
                rules.miss()
                yield Problem(line.number, what)
            else:
                for what in rules.take(line.parsed):
                    yield Problem(line.number, what)

    def _each(self, lines: Iterable[Line]) -> Iterator[Problem]:
        has_old = False
        for line in lines:
            self.records += 1
            if line.problem == "is empty" or (has_old and _is_old(line)):
                continue
            yield from self._document(line, line.number)
            has_old |= _is_old(line)
            if self._is_foreign:
                return

    def _document(self, line: Line, number: int | None) -> Iterator[Problem]:
        for what in self._problems_of(line):
            yield Problem(number, what)

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
