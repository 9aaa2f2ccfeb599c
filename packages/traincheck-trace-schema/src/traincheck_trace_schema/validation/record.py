"""Whether a line of a shard is a record, by the schema and by the classes that readers use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.codec import structure_record
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.validation.recognition import KINDS
from traincheck_trace_schema.validation.schema import IsValid, problem_of, validity_of

if TYPE_CHECKING:
    from traincheck_trace_schema.validation.text import Line


@attrs.define
class RecordTest:
    """Tests records one by one; of a newer minor version, kinds that are unknown here may come."""

    is_newer: bool = False
    _is_valid: IsValid = attrs.field(init=False, factory=lambda: validity_of("trace"))

    def problem_of(self, line: Line) -> str:
        """Say what is wrong with a record; empty if nothing is."""
        record = line.parsed
        if not isinstance(record, dict):
            return "is no record: it must be an object"
        is_valid = self._is_valid(record)
        if is_valid and line.is_ours and not _may_be_integral(line.raw):
            return ""
        kind = record.get("kind")
        if self.is_newer and isinstance(kind, str) and kind not in KINDS:
            return ""
        try:
            structure_record(record)
        except TraceError as error:
            return str(error)
        return "" if is_valid else problem_of("trace", record)


def _may_be_integral(line: bytes) -> bool:
    """Whether there may be a float without a fraction: a schema takes it for an integer."""
    return b".0," in line or b".0}" in line or b".0]" in line or b"e+" in line
