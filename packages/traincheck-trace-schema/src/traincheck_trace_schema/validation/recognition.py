"""Which document a file is: by what it says, not by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.validation.folder import SHARDS, is_named_as
from traincheck_trace_schema.validation.schema import DOCUMENTS
from traincheck_trace_schema.validation.text import Line, read_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KINDS: Final = tuple(cls.kind for cls in get_args(TraceRecord))

_BY_SCHEMA: Mapping[str, str] = {document.schema: name for name, document in DOCUMENTS.items()}


@attrs.frozen
class Recognised:
    """What a file is; `whole` is what it says if it is one document and no JSON Lines."""

    document: str = ""  # "": none of ours
    whole: Line | None = None


def recognise(path: Path, first: Line) -> Recognised:
    """Tell what a file is from its first line, or from all of it."""
    name = _document(first.parsed)
    if name and not _is_whole(name, first.parsed):
        return Recognised(name)
    if not isinstance(first.parsed, dict) or name:
        whole = read_document(path)
        name = _document(whole.parsed)
        if name:
            return Recognised(name, whole)
        if is_named_as(path, *SHARDS):
            return Recognised("trace")  # whose first line is damaged
    return Recognised()


def _document(parsed: Any) -> str:
    if not isinstance(parsed, dict):
        return ""
    schema = parsed.get("schema")
    if isinstance(schema, str) and schema in _BY_SCHEMA:
        return _BY_SCHEMA[schema]
    if parsed.get("kind") in KINDS:
        return "trace"
    return "invariants" if is_old_invariant(parsed) else ""


def is_old_invariant(parsed: Mapping[str, Any]) -> bool:
    """Whether a line is an invariant as TrainCheck 0.x wrote them."""
    return "schema" not in parsed and {"relation", "params"} <= parsed.keys()


def _is_whole(name: str, parsed: Mapping[str, Any]) -> bool:
    """Whether a document that begins in the first line is all of the file."""
    return name in {"plan", "progress"} or (name == "results" and "verdict" not in parsed)
