"""Checks one run: streams it once through the monitors of all invariants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_check.finding import Finding
from traincheck_check.unrecorded import unrecorded
from traincheck_relations.conditions.preconditions import Test, compile_group, condition_of
from traincheck_relations.engine import Fault, Seen, Watch
from traincheck_trace_schema.reading import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_relations.api import Relation
    from traincheck_trace_schema.invariants import Invariant, Params

_NONE: Mapping[str, str] = MappingProxyType({})

_Guarded: TypeAlias = "tuple[Test, Finding]"


@attrs.frozen(kw_only=True)
class Checked:
    """What checking a run found out; `findings` has one for each invariant, in their order."""

    run: Run
    findings: tuple[Finding, ...]
    seen: Seen
    faults: tuple[Fault, ...]
    unchecked: Mapping[str, str] = attrs.field(factory=dict)  # id of an invariant: why

    @property
    def incomplete_because(self) -> tuple[str, ...]:
        """Why "no violation" would not be the whole truth; empty if it is."""
        failures = (f"{fault.relation} failed: {fault.error}" for fault in self.faults)
        return (*self.run.incomplete_because(), *failures)


def check_run(
    run: Run,
    invariants: Sequence[Invariant],
    relations: Mapping[str, Relation],
    unchecked: Mapping[str, str] = _NONE,
) -> Checked:
    """Check a run against invariants.

    Args:
        run: The run.
        invariants: What is to be checked.
        relations: The relations that they are about, by name.
        unchecked: Ids of those that can't be checked, and why.

    Raises:
        TraceError: The trace cannot be read.
    """
    findings = tuple(map(Finding, invariants))
    claims = _by_claim([one for one in findings if one.invariant.id not in unchecked], relations)
    watch = Watch(run, relations, {name: tuple(of) for name, of in claims.items()})
    by_index = {name: tuple(of.values()) for name, of in claims.items()}
    for name, example in watch:
        for condition, finding in by_index[name][example.param]:
            if condition(example.context):
                finding.add(example)
            else:
                finding.unmet += 1
    silent = unrecorded(run, findings, watch.seen)
    return Checked(
        run=run,
        findings=tuple(
            Finding(one.invariant) if one.invariant.id in silent else one for one in findings
        ),
        seen=watch.seen,
        faults=tuple(watch.faults),
        unchecked={**unchecked, **silent},
    )


def _by_claim(
    findings: Sequence[Finding], relations: Mapping[str, Relation]
) -> Mapping[str, Mapping[Params, Sequence[_Guarded]]]:
    """Bring together what differs in its precondition only: one monitor follows each claim."""
    claims: defaultdict[str, dict[Params, list[_Guarded]]] = defaultdict(dict)
    for finding in findings:
        invariant = finding.invariant
        condition = compile_group(condition_of(invariant, relations[invariant.relation]))
        same = claims[invariant.relation].setdefault(invariant.params, [])
        same.append((condition, finding))
    return claims
