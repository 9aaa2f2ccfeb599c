"""Chooses what is recorded: which functions, and what of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.api.callables import function_in
from traincheck_instrument.api.namespaces import held_at
from traincheck_instrument.api.observation import observation_of
from traincheck_instrument.api.scope import MAIN, TAKEN_BUILTINS, TORCH, Scope
from traincheck_instrument.api.spec import FunctionSpec
from traincheck_instrument.encode.scalars import is_plain
from traincheck_trace_schema.plan import FunctionPlan, Plan

if TYPE_CHECKING:
    from traincheck_instrument.api.catalogue import ApiFunction
    from traincheck_trace_schema.values import Scalar

_OPTIMIZER = "torch.optim.Optimizer"


@attrs.frozen(kw_only=True)
class Choice:
    """What is asked for: by a plan that names functions, or all of some modules."""

    plan: Plan
    modules: tuple[str, ...] = (TORCH,)
    with_private: bool = False
    with_builtins: bool = False
    _entries: Mapping[str, Sequence[FunctionPlan]] = attrs.field(init=False)  # by name
    _asked: frozenset[str] | None = attrs.field(init=False)  # to be looked around; None: all points

    @_entries.default
    def _group(self) -> dict[str, list[FunctionPlan]]:
        entries: dict[str, list[FunctionPlan]] = {}
        for entry in self.plan.functions or ():
            entries.setdefault(entry.name, []).append(entry)
        return entries

    @_asked.default
    def _ask(self) -> frozenset[str] | None:
        return None if self.plan.functions is None else frozenset(self.plan.looks_around)

    @property
    def scope(self) -> Scope:
        """What has to be read for it: torch, too, as its functions change the variables."""
        named = [entry.name.partition(".")[0] for entry in self.plan.functions or ()]
        return Scope(
            roots=tuple(dict.fromkeys((*self.modules, TORCH, *named))),
            with_private=self.with_private,
            with_builtins=self.with_builtins or self._names_builtins(),
        )

    def _names_builtins(self) -> bool:
        """Whether the plan names functions that have to be looked for among builtins.

        What was learnt from a recording with them does.
        """
        held = (held_at(name) for name in self._entries if name not in TAKEN_BUILTINS)
        return any(
            function_in(each) is None and function_in(each, with_builtins=True) is not None
            for each in held
        )

    def not_observed(self) -> dict[str, str]:
        """Say which of the modules are not recorded, and why."""
        scope = self.scope
        why = dict.fromkeys(
            filter(scope.is_closed, self.modules), "no functions of it can be recorded"
        )
        if MAIN in self.modules:
            why[MAIN] = "of the script itself only methods that override public ones are recorded"
        return why

    def spec(self, function: ApiFunction, *, is_of_model: bool = False) -> FunctionSpec | None:
        """Say what to record of a function; None: nothing.

        Args:
            function: It.
            is_of_model: It is what a model does when the program calls it.
        """
        names = function.names
        if not (is_of_model or self._may_record(function)):
            return None
        is_full = self.plan.functions is None
        point = observation_of(names, self._asked)
        chosen = [entry for name in names for entry in self._entries.get(name, ())]
        if not (is_full or chosen or point):
            return None
        arguments = None if is_full else _arguments(chosen)
        return FunctionSpec(
            name=function.name,
            bases=function.bases,
            aliases=function.aliases,
            parameters=function.parameters,
            defaults=_plain_defaults(function, arguments),
            is_method=function.is_method,
            is_optimizer_method=_OPTIMIZER in {name.rpartition(".")[0] for name in names},
            arguments=arguments,
            wants_result=is_full or any(entry.result for entry in chosen),
            point=point,
        )

    def _may_record(self, function: ApiFunction) -> bool:
        """Whether a function is in the modules, changes variables, or is named by the plan itself.

        Of other classes of the program only such methods are recorded, whoever asks for the public
        ones that they override: what `Net.forward` calls says nothing about another program.
        """
        return (
            function.name.startswith(tuple(f"{module}." for module in self.modules))
            or function.name in self._entries
            or observation_of(function.names, None) is not None
        )


def _plain_defaults(
    function: ApiFunction, arguments: frozenset[str] | None
) -> Mapping[str, Scalar]:
    """Return the defaults of the arguments to record that JSON can tell."""
    return {
        name: value
        for name, value in function.defaults.items()
        if (arguments is None or name in arguments) and is_plain(value)
    }


def _arguments(chosen: Iterable[FunctionPlan]) -> frozenset[str] | None:
    """Return the arguments to record; None: all."""
    if any(entry.arguments == "all" for entry in chosen):
        return None
    return frozenset(name for entry in chosen for name in entry.arguments)
