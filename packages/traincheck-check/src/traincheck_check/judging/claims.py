"""What runs are checked against: invariants, less what is suppressed, and what a baseline knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from traincheck_check.judging.suppressed import without_suppressed
from traincheck_relations.api import Relation
from traincheck_relations.registry import not_checkable, relations_for
from traincheck_relations.suppression import Suppressions, suppressions_beside
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariant_file import read_invariant_files
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.results import Suppressed
from traincheck_trace_schema.suppression_file import read_suppressions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@attrs.frozen(kw_only=True)
class Claims:
    """What runs are checked against."""

    invariants: tuple[Invariant, ...]
    relations: Mapping[str, Relation]  # that they are about, by name
    unchecked: Mapping[str, str] = attrs.field(factory=dict)  # ids of those that can't be: why
    suppressed: tuple[Suppressed, ...] = ()  # and so not among the invariants
    known: Mapping[str, str] = attrs.field(factory=dict)  # ids that a baseline names: the reason
    notes: tuple[str, ...] = ()  # what is to be said of the files

    @classmethod
    def of(cls, invariants: Sequence[Invariant]) -> Claims:
        """Take invariants as they are; of which relation is installed, they are checked."""
        loaded = relations_for(invariants)
        return cls(
            invariants=tuple(invariants),
            relations=loaded.relations,
            unchecked=not_checkable(invariants, loaded.relations, loaded.faults),
        )


def read_claims(
    paths: Sequence[Path], *, baseline: Path | None = None, with_suppressed: bool = False
) -> Claims:
    """Read invariant files, with the suppressions that stand beside them.

    Args:
        paths: The invariant files.
        baseline: A suppression file; what it matches is checked, and known to be broken.
        with_suppressed: Whether what is suppressed is checked all the same.

    Raises:
        InvariantError: There is nothing to check, or a file of invariants cannot be read.
        ConfigError: A file of suppressions cannot be read.
    """
    files = read_invariant_files(paths)
    suppressions = () if with_suppressed else suppressions_beside(paths)
    invariants, suppressed = without_suppressed(files.invariants, suppressions)
    if not invariants:
        why = (
            "every invariant is suppressed; check them all with --ignore-suppressions"
            if suppressed
            else "has no invariant to check; infer from longer or more runs"
        )
        raise InvariantError(f"{', '.join(map(str, paths))}: {why}")
    known = Suppressions.of(() if baseline is None else read_suppressions(baseline))
    return attrs.evolve(
        Claims.of(invariants),
        suppressed=tuple(suppressed),
        known={id_: one.reason for id_, one in known.by_id(invariants).items()},
        notes=tuple(files.notes),
    )
