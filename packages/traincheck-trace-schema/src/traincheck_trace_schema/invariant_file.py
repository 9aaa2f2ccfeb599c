"""Invariant files: JSON Lines, one invariant a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

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

    from traincheck_trace_schema.legacy.invariants import Claim


@attrs.frozen
class InvariantFiles:
    """What invariant files hold, and what of the old ones among them can't be expressed."""

    invariants: tuple[Invariant, ...]
    notes: tuple[str, ...] = ()


def read_invariants(paths: Sequence[Path]) -> list[Invariant]:
    """Read invariant files; an invariant that stands in them twice is returned once.

    Raises:
        InvariantError: a file or a line of it cannot be read.
    """
    return list(read_invariant_files(paths).invariants)


def read_invariant_files(paths: Sequence[Path]) -> InvariantFiles:
    """Read invariant files, of 1.0 and of TrainCheck 0.x, also mixed in one file.

    Raises:
        InvariantError: a file or a line of it cannot be read.
    """
    found: dict[str, Invariant] = {}
    notes: list[str] = []
    for path in paths:
        for invariant in _read(path, notes):
            found.setdefault(invariant.id, invariant)
    return InvariantFiles(tuple(found.values()), tuple(notes))


def write_invariants(path: Path, invariants: Iterable[Invariant]) -> None:
    """Write an invariant file."""
    write_json_lines(path, invariants)


def invariant_id(relation: str, params: Params, precondition: Mapping[str, ConditionGroup]) -> str:
    """Return the id of an invariant: the same invariant has the same one on any machine."""
    groups = {name: _canonical(unstructure(group)) for name, group in precondition.items()}
    return content_id([relation, [unstructure(param) for param in params], groups])


def _read(path: Path, notes: list[str]) -> Iterator[Invariant]:
    old = None
    for where, line in read_json_lines(path, error=InvariantError):
        if isinstance(line, dict) and "schema" not in line and "relation" in line:
            # Most files are of 1.0, and need none of what reads older ones.
            from traincheck_trace_schema.legacy.invariants import OldLines  # noqa: PLC0415

            old = old or OldLines(path)
            if (claim := old.take(line, where)) is not None:
                yield _invariant(claim)
            continue
        check_version(line, schema=SCHEMA, known=VERSION, where=where, error=InvariantError)
        yield structure(Invariant, line, where=where, error=InvariantError)
    if old is not None:
        notes.extend(old.told())


def _invariant(claim: Claim) -> Invariant:
    return Invariant(
        id=invariant_id(claim.relation, claim.params, claim.precondition),
        text_description=claim.text_description,
        relation=claim.relation,
        params=claim.params,
        precondition=claim.precondition,
        num_positive_examples=claim.num_positive_examples,
        num_negative_examples=claim.num_negative_examples,
    )


def _canonical(value: Any) -> Any:
    """Sort what is a set in meaning: conjunctions, their clauses, a clause's values."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_canonical, value), key=dumps)
    return value
