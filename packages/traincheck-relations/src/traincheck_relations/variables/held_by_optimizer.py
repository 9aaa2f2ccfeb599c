"""`HeldByOptimizerRelation`: optimizers hold what is trained, with the right hyper-parameters.

Everything is looked at when an optimizer's step begins. Claims are made of

- each parameter that requires a gradient and has one that is not zero: some optimizer holds it;
- a hyper-parameter, such as `weight_decay`, of the group that holds a vector (a bias, or the weight
  of a norm): it is zero, or is not. Of matrices nothing is claimed, since some leave embeddings out
  and some don't. Only optimizers whose groups differ in it are asked: the others make no
  distinction;
- the groups of the optimizer: the learning rate of at least one is not zero. A single step without
  says nothing, as where a warm-up begins or a decay ends at zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import Context, EventMonitor, Example, Interests, Requirements
from traincheck_relations.conditions.properties import (
    object_name,
    run_properties,
    variable_properties,
)
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import payload, value_class
from traincheck_relations.variables.holding import groups_of_caller, is_at_rest, number
from traincheck_relations.variables.observed import is_of_parameters, looked_at, stepping
from traincheck_trace_schema.invariants import OccasionParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traincheck_relations.api import Call, Event, Gap, Monitor, Proposer, VariableState
    from traincheck_trace_schema.values import Json

_PARAMETER = "torch.nn.Parameter"
_OPTIMIZER = "torch.optim.Optimizer"
_HELD = "held_by"
_RATE = "lr"
_BEGIN = OccasionParam(function=OPTIMIZER_STEP, phase="begin")
# What is counted of a group is no setting; nor are rates one to be told by zero or not.
_NO_SETTINGS = ("params", "state", "steps", "lr", "initial_lr")
_HELD_CLAIM = (VarTypeParam(var_type=_PARAMETER, attr_name=_HELD, post_value="non_none"), _BEGIN)
_RATE_CLAIM = (
    VarTypeParam(var_type=_OPTIMIZER, attr_name=_RATE, post_value="non_zero", quantifier="some"),
    _BEGIN,
)
_LONG = 2  # steps in a row without a learning rate


class HeldByOptimizerRelation:
    """What is trained is held by an optimizer, in a group with the right hyper-parameters."""

    name: ClassVar[str] = "HeldByOptimizerRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return HeldByOptimizerProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        attribute = _parts(params).attr_name
        of_parameters = {"parameter": frozenset(("grad", "requires_grad"))}
        if attribute == _HELD:
            variables = of_parameters
        elif attribute == _RATE:
            variables = {"optimizer": frozenset((_RATE,))}
        else:
            # The data tells the dimensions.
            variables = {
                "parameter": frozenset(("data", "grad", "requires_grad")),
                "optimizer": frozenset((attribute,)),
            }
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables=variables,
            observe_before=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return HeldByOptimizerMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        variable = _parts(params)
        if variable.attr_name == _HELD:
            return "Each parameter that has a gradient is held by an optimizer when one steps"
        if variable.attr_name == _RATE:
            return f"Each optimizer that steps has a group whose {_RATE} is not zero"
        found = "zero" if variable.post_value == "zero" else "not zero"
        return (
            f"Where the groups of an optimizer differ in {variable.attr_name}, it is {found} for "
            "each parameter of one dimension (biases, norms)"
        )

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        attribute = _parts(params).attr_name
        if attribute == _HELD:
            return (
                "whether the optimizer was made before these parameters were: added, replaced, "
                "moved, wrapped; whether their module is registered in the model (a plain list or "
                "dict is not); whether the selection of its parameter groups leaves them out"
            )
        if attribute == _RATE:
            return (
                "the schedule of the learning rate: how many steps it was made for, whether it "
                "steps more often than the optimizer, so that it ends early; whether its warm-up "
                "ever ends; whether the state that was loaded has a rate of zero"
            )
        return (
            "how parameters are sorted into the groups of the optimizer: the pattern of names that "
            f"chooses their {attribute} may not match these modules; whether the type of module, "
            "or the number of dimensions, would choose better"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        return 0.9 if _parts(params).attr_name == _HELD else 0.7


class HeldByOptimizerProposer:
    """Proposes what was seen: parameters that are held, groups that differ, a learning rate."""

    interests = Interests(kinds=frozenset(("observe",)), functions=frozenset((OPTIMIZER_STEP,)))

    def __init__(self) -> None:
        self._settings: set[str] = set()
        self._is_held = False
        self._has_rate = False

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if (call := stepping(event)) is not None:
            groups = groups_of_caller(event.run, call)
            self._settings.update(_differing(groups))
            self._has_rate |= any(number(of.get(_RATE)) for of in groups.values())
            if not self._is_held and is_of_parameters(event):
                self._is_held = any(state.holders for state in looked_at(event).values())

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        if self._is_held:
            yield _HELD_CLAIM
        if self._has_rate:
            yield _RATE_CLAIM
        for name in sorted(self._settings):
            for value in ("non_zero", "zero"):
                yield VarTypeParam(var_type=_PARAMETER, attr_name=name, post_value=value), _BEGIN


class HeldByOptimizerMonitor(EventMonitor):
    """Looks at parameters and groups when a step begins."""

    interests = Interests(kinds=frozenset(("observe",)), functions=frozenset((OPTIMIZER_STEP,)))

    def __init__(self, params: Sequence[Params]) -> None:
        self._held: list[int] = []
        self._rates: list[int] = []
        self._settings: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._without_rate: Counter[tuple[int, str | None]] = Counter()
        for index, param in enumerate(params):
            variable = _parts(param)
            if variable.attr_name == _HELD:
                self._held.append(index)
            elif variable.attr_name == _RATE:
                self._rates.append(index)
            else:
                self._settings[variable.attr_name].append((index, variable.post_value))

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        call = stepping(event)
        if call is None or not event.is_main:
            return ()
        if "optimizer" in event.record["roles"]:
            return self._rate_examples(event, call)
        if not is_of_parameters(event):
            return ()
        return (*self._held_examples(event, call), *self._setting_examples(event, call))

    def on_gap(self, gap: Gap) -> None:
        """Forget how many steps had no learning rate."""
        for key in [key for key in self._without_rate if key[0] == gap.process]:
            del self._without_rate[key]

    def _held_examples(self, event: Event, call: Call) -> Iterator[Example]:
        if not self._held or "requires_grad" not in event.record["attributes"]:
            return
        about_run = run_properties(event)
        for state in looked_at(event).values():
            if not _is_trained(state):
                continue
            held = bool(state.holders)
            for index in self._held:
                yield Example(
                    param=index,
                    held=held,
                    context={**about_run, **_facts(state)},
                    at=position_of(event, call, state.names[0]),
                    evidence=partial(evidence_of, event, call),
                    happened=""
                    if held
                    else f"{state.names[0]} requires a gradient and has one, but no optimizer "
                    f"holds it when {call.function} begins",
                )

    def _setting_examples(self, event: Event, call: Call) -> Iterator[Example]:
        groups = groups_of_caller(event.run, call) if self._settings else {}
        settings = self._settings.keys() & _differing(groups)
        if not settings:
            return
        about_run = run_properties(event)
        for state in looked_at(event).values():
            mine = [one for one in state.groups if one in groups]
            is_trained = state.attributes.get("requires_grad") is True
            if not mine or not is_trained or not _is_vector(state):
                continue
            context = {**about_run, **_facts(state)}
            for name in sorted(settings):
                found = value_class(groups[mine[0]].get(name))
                for index, wanted in self._settings[name]:
                    held = found == wanted
                    yield Example(
                        param=index,
                        held=held,
                        context=context,
                        at=position_of(event, call, state.names[0]),
                        evidence=partial(evidence_of, event, call),
                        happened=""
                        if held
                        else f"{state.names[0]} is in {mine[0]}, whose {name} is "
                        f"{groups[mine[0]].get(name)}",
                    )

    def _rate_examples(self, event: Event, call: Call) -> Iterator[Example]:
        groups = groups_of_caller(event.run, call)
        key = (event.process, object_name(call))
        is_known = bool(groups) and all(number(of.get(_RATE)) is not None for of in groups.values())
        if not is_known:
            return
        if not all(map(is_at_rest, groups.values())):
            self._without_rate.pop(key, None)
        else:
            self._without_rate[key] += 1
        held = self._without_rate[key] == 0
        for index in self._rates if held or self._without_rate[key] >= _LONG else ():
            yield Example(
                param=index,
                held=held,
                context=run_properties(event),
                at=position_of(event, call),
                evidence=partial(evidence_of, event, call),
                happened=""
                if held
                else f"{call.function} begins with a learning rate of zero, "
                f"in {self._without_rate[key]} calls in a row",
            )


def _differing(groups: Mapping[str, Mapping[str, Json]]) -> set[str]:
    """Return the settings that are zero in some of an optimizer's groups, and not in others."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for of in groups.values():
        for name, value in of.items():
            if number(value) is not None and name not in _NO_SETTINGS:
                seen[name].add(value_class(value))
    return {name for name, classes in seen.items() if len(classes) > 1}


def _is_trained(state: VariableState) -> bool:
    is_required = state.attributes.get("requires_grad") is True
    return is_required and value_class(state.attributes.get("grad")) == "non_zero"


def _facts(state: VariableState) -> Context:
    """Return what is known of a variable apart from who holds it; names are of one program."""
    facts = variable_properties(state)
    for name in ("var.name", "var.held", "var.ndim", "var.dtype", "var.grad"):
        facts.pop(name, None)
    return facts


def _is_vector(state: VariableState) -> bool:
    """Whether a parameter is told to have one dimension."""
    shape = payload(state.attributes.get("data"), "tensor").get("shape")
    return isinstance(shape, list) and len(shape) == 1


def _parts(params: Params) -> VarTypeParam:
    variable, occasion = params
    if not isinstance(variable, VarTypeParam) or occasion != _BEGIN:
        msg = (
            "HeldByOptimizerRelation takes a VarTypeParam and the begin of "
            f"{OPTIMIZER_STEP} as its OccasionParam, got {params!r}"
        )
        raise TypeError(msg)
    return variable
