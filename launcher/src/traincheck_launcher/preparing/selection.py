"""What is recorded for invariants: the plans, and what is told of those that can't be checked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.planning import plan_for
from traincheck_relations.registry import not_checkable, relations_for
from traincheck_trace_schema.cli import note, warn
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.invariant_file import read_invariant_files
from traincheck_trace_schema.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@attrs.frozen
class Selection:
    """What is to be recorded: for all invariants together, and what each of them needs."""

    plan: Plan
    of_each: tuple[Plan, ...]


def select(paths: Sequence[Path]) -> Selection:
    """Return what has to be recorded to check the invariants of some files.

    Raises:
        ConfigError: there are none.
        InvariantError: a file cannot be read, or none of the invariants can be checked.
    """
    files = read_invariant_files(paths)
    for text in files.notes:
        note(text)
    if not files.invariants:
        names = ", ".join(map(str, paths))
        raise ConfigError(f"--invariants: no invariant in {names}; nothing would be recorded")
    loaded = relations_for(files.invariants)
    relations = loaded.relations
    left_out = not_checkable(files.invariants, relations, loaded.faults)
    for reason, count in Counter(left_out.values()).items():
        plural = "s" if count > 1 else ""
        warn(f"nothing is recorded for {count} invariant{plural}: {reason}")
    kept = [invariant for invariant in files.invariants if invariant.id not in left_out]
    return Selection(plan_for(kept, relations), tuple(plan_for([each], relations) for each in kept))
