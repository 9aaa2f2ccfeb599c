"""From documents to objects and back: ujson for the text, one cattrs converter for the classes.

The converter is strict: `"7"` is no integer, nor is `True`; an integer will do for a number. Fields
that a class does not know are ignored. Fields that have their default are left out when written,
except those that say what a document is.
"""

from __future__ import annotations

import functools
import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

import cattrs
import ujson

from traincheck_trace_schema._converter import hooks_by_tag, make_converter
from traincheck_trace_schema._value_hook import read_value
from traincheck_trace_schema.constraints import Mismatch, shown
from traincheck_trace_schema.errors import TraceError, TraincheckError
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.values import Json, TypedValue, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_trace_schema._hooks import Hook

T = TypeVar("T")
_ID_BYTES = 8
_PROBLEMS = (cattrs.BaseValidationError, Mismatch, RecursionError)


def dumps(obj: object, *, indent: int = 0) -> str:
    """Return the JSON text of plain values.

    Raises:
        OverflowError: a number is not finite; documents say `{"float": "nan"}` instead.
    """
    return ujson.dumps(obj, allow_nan=False, escape_forward_slashes=False, indent=indent)


def loads(text: str | bytes) -> Any:
    """Return what a JSON text says.

    Raises:
        ValueError: it is no JSON.
    """
    return ujson.loads(text)


def content_id(obj: object) -> str:
    """Return 16 hex digits that depend on the content of plain values, not on the order of keys."""
    text = ujson.dumps(obj, allow_nan=False, escape_forward_slashes=False, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()


def structure(
    cls: type[T], obj: object, *, where: str = "", error: type[TraincheckError] = TraceError
) -> T:
    """Make an object of a document's class from plain values.

    Args:
        cls: The class.
        obj: The values, as JSON gives them.
        where: Where they stand, as `path:line`; the message begins with it.
        error: What is raised.

    Raises:
        TraincheckError: of the class `error`; the message says which field is wrong and how.
    """
    try:
        return _converter().structure(obj, cls)
    except _PROBLEMS as problem:
        place = f"{where}: " if where else ""
        raise error(f"{place}{_explain(problem)}") from problem


def structure_record(raw: object) -> TraceRecord:
    """Make the record object of a line of a trace.

    Raises:
        TraceError: it is no object, the kind is unknown, or a field is wrong.
    """
    if not isinstance(raw, dict):
        raise TraceError(f"is no record: must be an object, got {shown(raw)}")
    kind = raw.get("kind")
    hook = _record_hooks().get(kind) if isinstance(kind, str) else None
    if hook is None:
        kinds = ", ".join(_record_hooks())
        if "kind" not in raw:
            raise TraceError(f"field 'kind' is missing; it is one of {kinds}")
        raise TraceError(f"field 'kind' must be one of {kinds}; got {shown(kind)}")
    try:
        record: TraceRecord = hook(raw, None)
    except _PROBLEMS as problem:
        raise TraceError(_explain(problem)) from problem
    return record


def structure_value(raw: Json) -> TypedValue:
    """Make a typed value of one that stands in a record: `{"dtype": "float32"}`, say.

    What a tensor or an object holds in turn, its data or attributes, stays as it stands there.

    Raises:
        TraceError: it is no value of a trace.
    """
    try:
        _converter().get_structure_hook(Value)(raw, Value)
        return read_value(_converter(), raw)
    except _PROBLEMS as problem:
        raise TraceError(_explain(problem, "the value")) from problem


def unstructure(obj: object) -> Any:
    """Return the plain values of an object of a document's class."""
    return _converter().unstructure(obj)


@functools.cache
def _converter() -> cattrs.Converter:
    return make_converter()


@functools.cache
def _record_hooks() -> Mapping[str, Hook]:
    return hooks_by_tag(_converter(), "kind", TraceRecord)


def _explain(problem: BaseException, whole: str = "the line") -> str:
    """Say in one line which field is wrong first, and how; `whole` is what has the fields."""
    path = ""
    while isinstance(problem, cattrs.BaseValidationError):
        problem, *_ = problem.exceptions
        for note in getattr(problem, "__notes__", ()):
            if isinstance(note, cattrs.AttributeValidationNote):
                path += f".{note.name.removesuffix('_')}"  # `self_` stands for `self`
            elif isinstance(note, cattrs.IterableValidationNote):
                path += f"[{note.index!r}]"
    if isinstance(problem, RecursionError):
        return f"{whole} is nested too deep to be read"
    field = f"field {path.removeprefix('.')!r}" if path else whole
    return f"{field} {'is missing' if isinstance(problem, KeyError) else problem}"
