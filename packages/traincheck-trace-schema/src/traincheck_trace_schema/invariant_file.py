"""Invariant files: JSON Lines, one invariant a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.codec import content_id, dumps, structure, unstructure
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.files import read_json_lines, write_json_lines
from traincheck_trace_schema.invariants import (
    SCHEMA,
    VERSION,
    ConditionGroup,
    Invariant,
    Params,
)
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


def read_invariants(paths: Sequence[Path]) -> list[Invariant]:
    """Read invariant files; an invariant that stands in them twice is returned once.

    Raises:
        InvariantError: a file or a line of it cannot be read.
    """
    found: dict[str, Invariant] = {}
    for path in paths:
        for invariant in _read(path):
            found.setdefault(invariant.id, invariant)
    return list(found.values())


def write_invariants(path: Path, invariants: Iterable[Invariant]) -> None:
    """Write an invariant file."""
    write_json_lines(path, invariants)


def invariant_id(relation: str, params: Params, precondition: Mapping[str, ConditionGroup]) -> str:
    """Return the id of an invariant: the same invariant has the same one on any machine."""
    groups = {name: _canonical(unstructure(group)) for name, group in precondition.items()}
    return content_id([relation, [unstructure(param) for param in params], groups])


def _read(path: Path) -> Iterator[Invariant]:
    for where, line in read_json_lines(path, error=InvariantError):
        check_version(line, schema=SCHEMA, known=VERSION, where=where, error=InvariantError)
        yield structure(Invariant, line, where=where, error=InvariantError)


def _canonical(value: Any) -> Any:
    """Sort what is a set in meaning: conjunctions, their clauses, a clause's values."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_canonical, value), key=dumps)
    return value
