"""A base for relations that say something about each call of a function, when it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import attrs

from traincheck_relations.api import (
    Call,
    Context,
    Event,
    EventMonitor,
    Example,
    Interests,
    RawRecord,
    Requirements,
    RunState,
)
from traincheck_relations.conditions.properties import call_properties, run_properties
from traincheck_relations.occasion import evidence_of, position_of
from traincheck_trace_schema.invariants import APIParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Gap
    from traincheck_trace_schema.invariants import Params


@attrs.frozen(eq=False)
class Returned:
    """A call that returned: where in the run it began, and the record of its end."""

    call: Call
    end: RawRecord
    stage: str
    step: int
    run: RunState


@attrs.frozen
class Verdict:
    """Whether a claim held for a call; if not, what was seen instead."""

    held: bool
    happened: str = ""


# None: the call is no occasion of the claim.
Judge: TypeAlias = Callable[[Returned], Verdict | None]


@attrs.frozen(eq=False)
class CallClaim:
    """A claim about the calls of a function.

    `judged`: the properties of the occasion that the judge looks at, by how their names begin. They
    are no part of the context: a claim that holds when it holds says nothing.
    """

    function: str
    judge: Judge
    judged: tuple[str, ...] = ()


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
        return PerCallMonitor([CallClaim(_function(one), self._judge) for one in params])

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        return f"Each call of {_function(params)} {self.claim}"

    def _judge(self, one: Returned) -> Verdict:
        if self.holds(one.call, one.end):
            return Verdict(held=True)
        return Verdict(
            held=False,
            happened=f"a call of {one.call.function} did not do what holds of it: {self.claim}",
        )


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


class PerCallMonitor(EventMonitor):
    """Judges each call when it returns, in the context in which it began.

    A judge knows the arguments, the result, and where in the run the call began.
    """

    def __init__(self, claims: Sequence[CallClaim]) -> None:
        self._claims: defaultdict[str, list[tuple[int, CallClaim]]] = defaultdict(list)
        for index, claim in enumerate(claims):
            self._claims[claim.function].append((index, claim))
        self._begun: dict[tuple[int, int], Event] = {}
        self.interests = Interests(
            kinds=frozenset(("call_begin", "call_end", "call_error")),
            functions=frozenset(self._claims),
        )

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        if event.call is None:
            return ()
        key = (event.process, event.call.id)
        if event.kind == "call_begin":
            self._begun[key] = event
            return ()
        begin = self._begun.pop(key, None)
        if begin is None or event.kind != "call_end":
            return ()
        return self._examples(begin, event, event.call)

    def on_gap(self, gap: Gap) -> None:
        """Forget the calls that were open when records were lost."""
        for key in [key for key in self._begun if key[0] == gap.process]:
            del self._begun[key]

    def _examples(self, begin: Event, end: Event, call: Call) -> Iterator[Example]:
        returned = Returned(call, end.record, begin.stage, begin.window.step, begin.run)
        context = _ContextOfCall(begin, call)  # most calls are an occasion of none or of several
        for name in call.names:
            for index, claim in self._claims.get(name, ()):
                verdict = claim.judge(returned)
                if verdict is None:
                    continue
                yield Example(
                    param=index,
                    held=verdict.held,
                    context=partial(context, claim.judged) if claim.judged else context,
                    at=partial(position_of, end, call),
                    evidence=partial(evidence_of, end, call),
                    happened=verdict.happened,
                )


@attrs.define(eq=False)
class _ContextOfCall:
    """Gives the context in which a call began, without what is judged; each is made once."""

    _begin: Event
    _call: Call
    _made: dict[tuple[str, ...], Context] = attrs.field(factory=dict)

    def __call__(self, judged: tuple[str, ...] = ()) -> Context:
        made = self._made.get(judged)
        if made is None:
            made = self._made[judged] = self._make(judged)
        return made

    def _make(self, judged: tuple[str, ...]) -> Context:
        if not judged:
            return {**call_properties(self._call), **run_properties(self._begin)}
        return {name: value for name, value in self().items() if not name.startswith(judged)}


def _function(params: Params) -> str:
    (param,) = params
    if not isinstance(param, APIParam):
        raise TypeError(f"a relation about each call takes an APIParam, got {param!r}")
    return param.api_full_name
