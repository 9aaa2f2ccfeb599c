"""Evaluates what calls contain: other calls, and changes of variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from traincheck_relations.api import (
    Call,
    Event,
    EventMonitor,
    Example,
    Gap,
    Interests,
    VariableState,
)
from traincheck_relations.conditions.properties import (
    call_properties,
    run_properties,
    variable_properties,
)
from traincheck_relations.containment.arguments import may_have
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.variables.change import (
    applies,
    concerned,
    is_call_left_open,
    is_change,
    is_left_open,
    is_step_skipped,
    is_still,
    is_told,
    may_be_lost,
    what_was_left,
    what_was_not_changed,
)
from traincheck_relations.variables.gradient_turns import GradientTurns, gives_gradient
from traincheck_relations.variables.holding import may_stop, resting
from traincheck_relations.variables.observed import ObservedCall, ObservedCalls
from traincheck_trace_schema.invariants import APIParam, Free, Params, VarTypeParam
from traincheck_trace_schema.values import Scalar

_CALLS = frozenset(("call_begin", "call_end", "call_error"))


@attrs.define(eq=False)
class _OpenParent:
    """A call that may contain something: what was known when it began, what was called in it."""

    context: Mapping[str, Scalar]
    called: set[str] = attrs.field(factory=set)
    called_as_asked: set[int] = attrs.field(factory=set)  # params that ask for arguments


class ContainMonitor(EventMonitor):
    """Evaluates what calls contain, when they end."""

    def __init__(self, params: Sequence[Params]) -> None:
        self._children: dict[str, list[tuple[int, APIParam]]] = defaultdict(list)
        self._asking: dict[str, list[tuple[int, APIParam]]] = defaultdict(list)
        self._changes: dict[str, list[tuple[int, VarTypeParam]]] = defaultdict(list)
        functions = set()
        for index, param in enumerate(params):
            parent, child = parts_of(param)
            functions.add(parent.api_full_name)
            if isinstance(child, APIParam):
                functions.add(child.api_full_name)
                self._children[parent.api_full_name].append((index, child))
                if child.arguments:
                    self._asking[child.api_full_name].append((index, child))
            else:
                self._changes[parent.api_full_name].append((index, child))
        kinds = _CALLS | {"observe"} if self._changes else _CALLS
        self.interests = Interests(kinds=kinds, functions=frozenset(functions))
        self._open: dict[tuple[int, int], _OpenParent] = {}
        self._observed = ObservedCalls()
        self._turns = GradientTurns()

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        if event.kind == "observe":
            observed = self._observed.on_observe(event)
            return () if observed is None else self._change_examples(event, observed)
        if event.call is None:
            return ()
        if event.kind == "call_begin":
            self._begin(event, event.call)
            return ()
        return self._call_examples(event, event.call)

    def on_gap(self, gap: Gap) -> None:
        """Forget the calls that were open when records were lost."""
        self._observed.forget(gap.process)
        for key in [key for key in self._open if key[0] == gap.process]:
            del self._open[key]

    def _begin(self, event: Event, call: Call) -> None:
        as_asked = {
            index
            for name in (call.names if self._asking else ())
            for index, child in self._asking.get(name, ())
            if may_have(call, child.arguments)
        }
        for around in call.around():
            if (parent := self._open.get((event.process, around.id))) is not None:
                parent.called.update(call.names)
                parent.called_as_asked |= as_asked
        if any(name in self._children for name in call.names):
            context = call_properties(call) | run_properties(event)
            self._open[event.process, call.id] = _OpenParent(context)

    def _call_examples(self, event: Event, call: Call) -> Iterator[Example]:
        parent = self._open.pop((event.process, call.id), None)
        if parent is None or event.kind != "call_end":
            return
        for name in call.names:
            for index, child in self._children.get(name, ()):
                held = (
                    index in parent.called_as_asked
                    if child.arguments
                    else child.api_full_name in parent.called
                )
                yield Example(
                    param=index,
                    held=held,
                    context=parent.context,
                    at=position_of(event, call),
                    evidence=partial(evidence_of, event, call),
                    happened="" if held else _what_was_not_called(call, child),
                )

    def _change_examples(self, event: Event, observed: ObservedCall) -> Iterator[Example]:
        call, wanted = observed.call, self._wanted(event, observed)
        if not wanted:
            return
        about_call = {**call_properties(call), **observed.context}
        every = list(observed.pairs())
        about = {
            name: concerned(call, name, every)
            for name in dict.fromkeys(child.attr_name for _, child in wanted)
        }
        at_rest = resting(event.run)
        if "data" in about:
            at_rest |= may_be_lost(every)
        contexts: dict[int, Mapping[str, Scalar]] = {}
        for index, child in wanted:
            pairs = about[child.attr_name]
            if child.quantifier == "some":
                yield from self._some(index, child, event, call, pairs, about_call, at_rest)
                continue
            for before, after in pairs:
                if applies(child, before, after) and not is_left_open(
                    child, before, after, at_rest
                ):
                    if before.id not in contexts:
                        contexts[before.id] = about_call | variable_properties(before, call)
                    context = contexts[before.id]
                    example = self._each(index, child, event, call, (before, after), context)
                    if gives_gradient(child):
                        yield from self._turns.take(event.process, before, example)
                    else:
                        yield example

    def _wanted(self, event: Event, observed: ObservedCall) -> list[tuple[int, VarTypeParam]]:
        """Return the claims about changes of which a call is an occasion, with their indices."""
        call = observed.call
        wanted = [
            (index, child)
            for name in call.names
            for index, child in self._changes.get(name, ())
            if child.attr_name in observed.attributes
            and not is_step_skipped(child, observed.before.values())
        ]
        has_stopped = (
            any(child.attr_name == "data" for _, child in wanted)
            and may_stop(event.run, call)
            and is_still(observed.pairs())
        )
        return [one for one in wanted if not (has_stopped and one[1].attr_name == "data")]

    def _each(  # noqa: PLR0913, PLR0917  one occasion is all of these
        self,
        index: int,
        child: VarTypeParam,
        event: Event,
        call: Call,
        states: tuple[VariableState, VariableState],
        context: Mapping[str, Scalar],
    ) -> Example:
        before, after = states
        held = is_change(child, before, after)
        return Example(
            param=index,
            held=held,
            context=context,
            at=position_of(event, call, before.names[0]),
            evidence=partial(evidence_of, event, call),
            happened="" if held else what_was_left(child, call, before, after),
        )

    def _some(  # noqa: PLR0913, PLR0917  as above
        self,
        index: int,
        child: VarTypeParam,
        event: Event,
        call: Call,
        pairs: Sequence[tuple[VariableState, VariableState]],
        context: Mapping[str, Scalar],
        at_rest: Collection[int],
    ) -> Iterator[Example]:
        comparable = [
            pair
            for pair in pairs
            if pair[0].type == child.var_type and is_told(*pair, child.attr_name)
        ]
        held = any(is_change(child, *pair) for pair in comparable)
        if not comparable or (not held and is_call_left_open(child, call, comparable, at_rest)):
            return
        yield Example(
            param=index,
            held=held,
            context=context,
            at=position_of(event, call),
            evidence=partial(evidence_of, event, call),
            happened="" if held else what_was_not_changed(child, call, comparable),
        )


def _what_was_not_called(call: Call, child: APIParam) -> str:
    asked = f" with the {', '.join(child.arguments)} that it had" if child.arguments else ""
    return f"{call.function} returned without calling {child.api_full_name}{asked}"


def parts_of(params: Params) -> tuple[APIParam, APIParam | VarTypeParam]:
    """Return the call, and what it contains.

    Raises:
        TypeError: The params are others than the relation has.
    """
    parent, child = params
    if (
        not isinstance(parent, APIParam)
        or not parent.is_any_call
        or not isinstance(child, APIParam | VarTypeParam)
        or (isinstance(child, APIParam) and child.exception is not None)
        or (isinstance(child, VarTypeParam) and child.const_value is not Free.ANY)
    ):
        msg = (
            "APIContainRelation takes an APIParam for any call, and an APIParam without exception "
            f"or a VarTypeParam without constant, got {params!r}"
        )
        raise TypeError(msg)
    return parent, child
