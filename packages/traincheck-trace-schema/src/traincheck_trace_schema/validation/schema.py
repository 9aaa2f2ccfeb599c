"""The JSON Schemas, and whether plain values are what one says."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import attrs

from traincheck_trace_schema import (
    invariants,
    plan,
    progress,
    records,
    results,
    suppressions,
)
from traincheck_trace_schema.codec import loads, structure, structure_record
from traincheck_trace_schema.errors import (
    ConfigError,
    InvariantError,
    TraceError,
    TraincheckError,
)
from traincheck_trace_schema.validation.meaning import class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

IsValid: TypeAlias = "Callable[[object], bool]"

_SUFFIX = ".schema.json"
_TAGS = ("kind", "param_type")


@attrs.frozen
class Document:
    """A kind of document: what it calls itself, the version known here, the error of reading it."""

    schema: str
    version: str
    error: type[TraincheckError]


DOCUMENTS: Final[Mapping[str, Document]] = {
    "trace": Document(records.SCHEMA, records.VERSION, TraceError),
    "invariants": Document(invariants.SCHEMA, invariants.VERSION, InvariantError),
    "plan": Document(plan.SCHEMA, plan.VERSION, ConfigError),
    "results": Document(results.SCHEMA, results.VERSION, ConfigError),
    "suppressions": Document(suppressions.SCHEMA, suppressions.VERSION, ConfigError),
    "progress": Document(progress.SCHEMA, progress.VERSION, ConfigError),
}


class _Problem(Protocol):
    """What is used of `jsonschema_rs.ValidationError`."""

    message: str
    instance_path: Sequence[str | int]
    kind: Any


def versions_of(document: str) -> tuple[str, ...]:
    """Return the versions of a document whose schemas are here, the oldest first.

    Raises:
        ConfigError: there is no such document.
    """
    if document not in DOCUMENTS:
        raise ConfigError(f"document must be one of {', '.join(DOCUMENTS)}; got {document!r}")
    folder = files("traincheck_trace_schema").joinpath("schemas", document)
    names = (each.name for each in folder.iterdir())
    found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
    return tuple(sorted(found, key=lambda version: [*map(int, version.split("."))]))


def load_schema(document: str, version: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a document.

    That of `trace` is of one record, of `invariants` and `suppressions` of one line; the others are
    `plan`, `results` and `progress`.

    Raises:
        ConfigError: there is no such document, or no such version of it.
    """
    schema: dict[str, Any] = loads(schema_text(document, version))
    return schema


def schema_text(document: str, version: str | None = None) -> str:
    """Return a JSON Schema as it was written; see `load_schema`."""
    known = versions_of(document)
    version = version or DOCUMENTS[document].version
    if version not in known:
        raise ConfigError(f"version of {document} must be one of {', '.join(known)}; got {version}")
    folder = files("traincheck_trace_schema").joinpath("schemas", document)
    return folder.joinpath(f"{version}{_SUFFIX}").read_text("utf-8")


def validate(document: str, instance: object) -> None:
    """Hold plain values, of a record, an invariant, a plan and so on, against their schema.

    The words are those of `traincheck-schema validate`.

    Raises:
        TraincheckError: a `TraceError` for a trace, an `InvariantError` for an invariant, else a
            `ConfigError`; the message says where in the document what is wrong.
    """
    problem, error = problem_of(document, instance), DOCUMENTS[document].error
    if document == "trace":
        structure_record(instance)
    elif isinstance(instance, dict):
        structure(class_of(document, instance), instance, error=error)
    if problem:
        raise error(problem)


def problem_of(document: str, instance: object) -> str:
    """Say where plain values are not what the schema says, and how; empty if they are."""
    problem = next(iter(_validator(document).iter_errors(instance)), None)
    if problem is None:
        return ""
    path, message = _deepest(problem)
    return f"{path}: {message}"


def validity_of(document: str) -> IsValid:
    """Return the quick test of plain values against a schema."""
    test: IsValid = _validator(document).is_valid
    return test


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
