"""Hold documents against their JSON Schemas; needs `traincheck-trace-schema[validate]`."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from traincheck_trace_schema import invariants, plan, records, results
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import (
    ConfigError,
    InvariantError,
    TraceError,
    TraincheckError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_TAGS = ("kind", "param_type")

_VERSIONS: Mapping[str, str] = {
    "trace": records.VERSION,
    "invariants": invariants.VERSION,
    "plan": plan.VERSION,
    "results": results.VERSION,
}
_ERRORS: Mapping[str, type[TraincheckError]] = {
    "trace": TraceError,
    "invariants": InvariantError,
    "plan": ConfigError,
    "results": ConfigError,
}


class _Problem(Protocol):
    """What is used of `jsonschema_rs.ValidationError`."""

    message: str
    instance_path: Sequence[str | int]
    kind: Any


def load_schema(document: str) -> dict[str, Any]:
    """Return the JSON Schema of `trace` (of one record), `invariants` (one), `plan` or `results`.

    Raises:
        ConfigError: there is no such document.
    """
    if document not in _VERSIONS:
        raise ConfigError(f"document must be one of {', '.join(_VERSIONS)}; got {document!r}")
    name = f"{_VERSIONS[document]}.schema.json"
    schema: dict[str, Any] = loads(
        files("traincheck_trace_schema").joinpath("schemas", document, name).read_text("utf-8")
    )
    return schema


def validate(document: str, instance: object) -> None:
    """Hold a record, an invariant, a plan or a result, as plain values, against its schema.

    Raises:
        TraincheckError: a `TraceError` for a trace, an `InvariantError` for an invariant, else a
            `ConfigError`; the message says where in the document what is wrong.
    """
    problem = next(iter(_validator(document).iter_errors(instance)), None)
    if problem is not None:
        path, message = _deepest(problem)
        raise _ERRORS[document](f"{document} {path}: {message}")


@functools.cache
def _validator(document: str) -> Any:
    schema = load_schema(document)
    try:
        import jsonschema_rs  # noqa: PLC0415  an extra, needed here only
    except ImportError as error:
        raise ConfigError(
            "Validating needs jsonschema-rs; install it with: "
            "pip install 'traincheck-trace-schema[validate]'"
        ) from error
    return jsonschema_rs.Draft202012Validator(schema)


def _deepest(problem: _Problem) -> tuple[str, str]:
    """Follow `oneOf` into the branch that was meant; return the JSON path and the reason there."""
    branches: Iterable[Sequence[_Problem]] = getattr(problem.kind, "context", ())
    meant = [branch[0] for branch in branches if branch and not any(map(_is_tag, branch))]
    if meant:
        return _deepest(max(meant, key=lambda each: len(each.instance_path)))
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.instance_path)
    return f"${''.join(steps)}", problem.message


def _is_tag(problem: _Problem) -> bool:
    """Whether a branch failed because it is for another kind of thing."""
    return bool(problem.instance_path) and problem.instance_path[-1] in _TAGS
