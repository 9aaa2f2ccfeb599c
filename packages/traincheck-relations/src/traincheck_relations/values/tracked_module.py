"""`TrackedModuleRelation`: the modules that a tracked model calls are parts of it.

A layer that a model keeps in a plain list, or makes anew in each call, is not registered: it has no
name in the model, no optimizer holds its parameters, and `train()` and `eval()` don't reach it.

Occasion: a call of a module's `forward` inside a call of a module that has a name. It holds if the
inner module has a name, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import Event, Interests, Monitor, Proposer, Requirements
from traincheck_relations.conditions.properties import FORWARD, is_in_tracked, object_name
from traincheck_relations.per_call import CallClaim, PerCallMonitor, Returned, Verdict
from traincheck_relations.values.call_values import has_gradients
from traincheck_trace_schema.invariants import APIParam, Params

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class TrackedModuleRelation:
    """A module that is called inside a tracked model is a part of it."""

    name: ClassVar[str] = "TrackedModuleRelation"
    group: ClassVar[str] = "pre_event"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return TrackedModuleProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`: the calls around them, too."""
        return Requirements(functions={_function(params): frozenset(), FORWARD: frozenset()})

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        claims = [CallClaim(_function(one), _judge, judged=("call.module.",)) for one in params]
        return PerCallMonitor(claims)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        return f"Each call of {_function(params)} inside a tracked model is of a part of it"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _function(params)
        return (
            "whether the module is registered in the model: kept in a plain list or dict (use "
            "ModuleList, ModuleDict) or made anew in each call it is not, no optimizer holds its "
            "parameters, and train(), to() and state_dict() leave it out; whether a copy is called"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        del params
        return 0.9


class TrackedModuleProposer:
    """Proposes types of modules that were seen to be parts of a tracked model, with parameters.

    What has none, as an activation, may as well be made in each call.
    """

    interests = Interests(kinds=frozenset(("call_begin",)), functions=frozenset((FORWARD,)))

    def __init__(self) -> None:
        self._functions: set[str] = set()
        self._owners: dict[int, tuple[int, frozenset[str]]] = {}  # by process

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if (
            call is not None
            and call.function not in self._functions
            and (module := object_name(call)) is not None
            and module in self._owners_in(event)
            and is_in_tracked(call)
        ):
            self._functions.add(call.function)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function in sorted(self._functions):
            yield (APIParam(api_full_name=function),)

    def _owners_in(self, event: Event) -> frozenset[str]:
        """Return the names of modules that have parameters of their own."""
        variables = event.run.variables()
        number, owners = self._owners.get(event.process, (-1, frozenset[str]()))
        if number != len(variables):  # they are told before the first call, and seldom change
            owners = frozenset(
                name.rpartition(".")[0]
                for state in variables.values()
                if state.role == "parameter"
                for name in state.names
            )
            self._owners[event.process] = (len(variables), owners)
        return owners


def _judge(one: Returned) -> Verdict | None:
    if not is_in_tracked(one.call) or not has_gradients(one.call):  # a teacher is no part of it
        return None
    if object_name(one.call) is not None:
        return Verdict(held=True)
    return Verdict(
        held=False,
        happened=f"{one.call.function} was called of a module that the model around it does not "
        "register: its parameters are not among those of the model",
    )


def _function(params: Params) -> str:
    (function,) = params
    if not isinstance(function, APIParam):
        raise TypeError(f"TrackedModuleRelation takes an APIParam, got {params!r}")
    return function.api_full_name
