"""A base for relations that say one thing about each call of a function, when it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import Example, Interests, Requirements
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_relations.properties import call_properties, run_properties
from traincheck_trace_schema.invariants import APIParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Call, Context, Event, Gap, RawRecord
    from traincheck_trace_schema.invariants import Params
    from traincheck_trace_schema.window import Window


class PerCallRelation(ABC):
    """A relation with one parameter, a function; a subclass says what is claimed of its calls.

    Attributes:
        claim: What follows "Each call of f", as "returns a tensor".
        needs_arguments: Names of the arguments that `holds` looks at.
        needs_result: Whether `holds` looks at the result.
    """

    name: ClassVar[str]
    group: ClassVar[str] = "pre_event"
    claim: ClassVar[str]
    needs_arguments: ClassVar[frozenset[str]] = frozenset()
    needs_result: ClassVar[bool] = False

    @abstractmethod
    def holds(self, call: Call, end: RawRecord) -> bool:
        """Whether the claim holds for a call, given the record of its end."""

    def proposer(self) -> PerCallProposer:
        """Make a proposer for one run."""
        return PerCallProposer(self)

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        function = _function(params)
        return Requirements(
            functions={function: self.needs_arguments},
            results=frozenset((function,)) if self.needs_result else frozenset(),
        )

    def monitor(self, params: Sequence[Params]) -> PerCallMonitor:
        """Make one monitor for all of `params`."""
        return PerCallMonitor(self, [_function(one) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        return f"Each call of {_function(params)} {self.claim}"


class PerCallProposer:
    """Proposes each function for a call of which the claim held."""

    interests = Interests(kinds=frozenset(("call_end",)))

    def __init__(self, relation: PerCallRelation) -> None:
        self._relation = relation
        self._functions: set[str] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        call = event.call
        if call is None or self._functions.issuperset(call.documented):
            return
        if self._relation.holds(call, event.record):
            self._functions.update(call.documented)

    def finish(self) -> Iterator[Params]:
        """Return the candidates, in a fixed order."""
        for function in sorted(self._functions):
            yield (APIParam(api_full_name=function),)


class PerCallMonitor:
    """Judges each call when it returns, in the context in which it began."""

    def __init__(self, relation: PerCallRelation, functions: Sequence[str]) -> None:
        self._relation = relation
        self._indices: defaultdict[str, list[int]] = defaultdict(list)
        for index, function in enumerate(functions):
            self._indices[function].append(index)
        self._begun: dict[tuple[int, int], Context] = {}
        kinds = frozenset(("call_begin", "call_end", "call_error"))
        self.interests = Interests(kinds=kinds, functions=frozenset(functions))

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        call = event.call
        if call is None:
            return ()
        key = (event.process, call.id)
        if event.kind == "call_begin":
            self._begun[key] = {**call_properties(call), **run_properties(event)}
            return ()
        context = self._begun.pop(key, None)
        if context is None or event.kind != "call_end":
            return ()
        return self._examples(event, call, context)

    def on_window_end(self, window: Window) -> Iterable[Example]:
        """Do nothing: a call is judged when it returns."""
        del window
        return ()

    def on_gap(self, gap: Gap) -> None:
        """Forget the calls that were open when records were lost."""
        for key in [key for key in self._begun if key[0] == gap.process]:
            del self._begun[key]

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        """Do nothing: a call without an end is no occasion."""
        del complete
        return ()

    def _examples(self, event: Event, call: Call, context: Context) -> Iterator[Example]:
        held = self._relation.holds(call, event.record)
        for name in call.names:
            for index in self._indices.get(name, ()):
                yield Example(
                    param=index,
                    held=held,
                    context=context,
                    at=position_of(event, call),
                    evidence=() if held else evidence_of(event, call),
                    happened="" if held else self._happened(call),
                )

    def _happened(self, call: Call) -> str:
        return f"a call of {call.function} did not do what holds of it: {self._relation.claim}"


def _function(params: Params) -> str:
    (param,) = params
    if not isinstance(param, APIParam):
        raise TypeError(f"a relation about each call takes an APIParam, got {param!r}")
    return param.api_full_name
