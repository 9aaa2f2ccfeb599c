"""Which groups of optimizers hold each parameter, and what hyper-parameters these have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.conditions.properties import object_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_relations.api import Call, RunState
    from traincheck_trace_schema.values import Json

TOLERANCE = "tolerance_grad"  # the hyper-parameter below which LBFGS leaves all as it is
# Resolution of float32 at 1: a step of this size leaves a weight of that size as it is.
_TOO_SMALL = 1e-7
_ROLE = "optimizer"  # each of its groups is a variable


def hyper_parameters(run: RunState) -> dict[str, Mapping[str, Json]]:
    """Return the hyper-parameters of each group, as far as the trace tells, by its name."""
    return {
        state.names[0]: state.attributes
        for state in run.variables().values()
        if state.role == _ROLE and state.attributes
    }


def groups_of_caller(run: RunState, call: Call) -> dict[str, Mapping[str, Json]]:
    """Return the hyper-parameters of the groups of the optimizer that is called, by name."""
    prefix = f"{object_name(call)}.group"
    return {name: of for name, of in hyper_parameters(run).items() if name.startswith(prefix)}


def may_stop(run: RunState, call: Call) -> bool:
    """Whether the optimizer that is called may find that it has converged, as LBFGS does."""
    return any(TOLERANCE in of for of in groups_of_caller(run, call).values())


def resting(run: RunState) -> frozenset[int]:
    """Return the ids of the parameters that no group can move: its learning rate is zero.

    So is, in effect, one that is smaller than what weights are rounded to.
    """
    at_rest = {name for name, of in hyper_parameters(run).items() if is_at_rest(of)}
    if not at_rest:
        return frozenset()
    return frozenset(
        id_
        for id_, state in run.variables().items()
        if state.role == "parameter" and state.groups and at_rest.issuperset(state.groups)
    )


def is_at_rest(group: Mapping[str, Json]) -> bool:
    """Whether the learning rate of a group is told and too small to move anything."""
    rate = number(group.get("lr"))
    return rate is not None and abs(rate) < _TOO_SMALL


def number(value: Json) -> float | None:
    """Return a value that is a number; flags are none, nor is what JSON lacks."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
