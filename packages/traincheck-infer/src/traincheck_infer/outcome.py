"""What inference gives: invariants, and an account of all that was read and left out."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping

import attrs

from traincheck_relations.engine import Fault
from traincheck_trace_schema.invariants import Invariant


class Reason(enum.Enum):
    """Why a candidate is no invariant; the value completes "candidates left out"."""

    ONLY_TELLS = "about predicates and getters, which only tell something"
    FAULT = "of relations that failed"
    NEVER = "that held on no occasion"
    BEFORE_TRAINING = "that held before the first step only"
    CHANCE = "that held too seldom to be more than a coincidence"
    CONTRADICTED = "that a run contradicts"
    NO_PRECONDITION = "without a precondition that tells when they hold"
    FEW_RUNS = "that apply in fewer runs than --min-runs asks for"
    IMPLIED = "that another invariant implies"


@attrs.frozen(kw_only=True)
class ReadRun:
    """What was read of a run; `folder` is that of its first shard."""

    run_id: str
    folder: str
    steps: int
    records: int
    incomplete_because: tuple[str, ...]
    notes: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Inference:
    """What was inferred, and from what.

    `left_out` counts candidates by reason; an invariant that is implied counts as one, too.
    `contradicted_by` counts, for each run, the candidates that held in the others.
    """

    invariants: tuple[Invariant, ...]
    runs: tuple[ReadRun, ...]
    candidates: int
    left_out: Mapping[Reason, int] = attrs.field(factory=Counter)
    contradicted_by: Mapping[str, int] = attrs.field(factory=Counter)
    faults: tuple[Fault, ...] = ()

    @property
    def steps(self) -> Mapping[str, int]:
        """How many training steps each run has, by its id."""
        return {run.run_id: run.steps for run in self.runs}

    @property
    def records(self) -> int:
        """How many records were read."""
        return sum(run.records for run in self.runs)
