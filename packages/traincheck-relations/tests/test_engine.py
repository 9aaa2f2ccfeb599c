"""The engine: who gets which events, and what becomes of a relation that fails."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from traincheck_relations.api import Event, Example, Gap, Interests, Position, Requirements
from traincheck_relations.engine import Watch, propose
from traincheck_relations.testing.traces import ShardBuilder, TraceBuilder
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.invariants import APIParam, Params
from traincheck_trace_schema.reading import Run, open_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from traincheck_trace_schema.window import Window


class Spy:
    """A relation, and its own proposer and monitor, that notes what it is given."""

    name = "Spy"
    group = "spy"

    def __init__(
        self,
        *functions: str,
        kinds: Iterable[str] = ("call_begin",),
        fails: Exception | None = None,
    ) -> None:
        self.interests = Interests(kinds=frozenset(kinds), functions=frozenset(functions))
        self.fails = fails
        self.events: list[Event] = []
        self.said: list[object] = []

    def proposer(self) -> Spy:
        return self

    def requires(self, params: Params) -> Requirements:
        raise NotImplementedError

    def monitor(self, params: Sequence[Params]) -> Spy:
        self.said.append(len(params))
        return self

    def describe(self, params: Params) -> str:
        raise NotImplementedError

    def finish(self) -> Iterable[Params]:
        return [CLAIM]

    def on_event(self, event: Event) -> Iterable[Example]:
        self.events.append(event)
        if self.fails is not None:
            raise self.fails
        yield example(event.window)

    def on_window_end(self, window: Window) -> Iterable[Example]:
        self.said.append(("window", window.step))
        return ()

    def on_gap(self, gap: Gap) -> None:
        self.said.append(("gap", gap.reason))

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        self.said.append(("complete", complete))
        return ()


class Proposing(Spy):
    def on_event(self, event: Event) -> None:
        self.events.append(event)
        if self.fails is not None:
            raise self.fails


CLAIM: Params = (APIParam(api_full_name="f"),)


def example(window: Window) -> Example:
    at = Position(rank=0, window=window, stage="training")
    return Example(param=0, held=True, context={}, at=at)


@pytest.fixture
def trace(tmp_path: Path) -> TraceBuilder:
    return TraceBuilder(tmp_path)


def two_calls(rank: ShardBuilder) -> None:
    rank.function("torch.optim.SGD.step", "torch.optim.Optimizer.step")
    rank.step(0)
    for function in ("torch.optim.SGD.step", "torch.relu"):
        with rank.call(function):
            pass


def read(trace: TraceBuilder, *, complete: bool = True) -> Run:
    trace.write(complete=complete)
    (run,) = open_runs([trace.folder])
    return run


def functions(spy: Spy) -> list[object]:
    return [event.record["function"] for event in spy.events]


def watch(run: Run, *spies: Spy) -> Watch:
    names = [f"Spy{number}" for number in range(len(spies))]
    return Watch(run, dict(zip(names, spies, strict=True)), dict.fromkeys(names, (CLAIM,)))


def test_calls_go_to_those_who_named_the_function_or_its_base(trace: TraceBuilder) -> None:
    """A function is found by its own name and by those of the methods that it overrides."""
    two_calls(trace.rank())
    own, base, other, every = (
        Spy("torch.optim.SGD.step"),
        Spy("torch.optim.Optimizer.step"),
        Spy("torch.nn.Linear.forward"),
        Spy(),
    )

    list(watch(read(trace), own, base, other, every))

    assert functions(own) == functions(base) == ["torch.optim.SGD.step"]
    assert functions(other) == []
    assert functions(every) == ["torch.optim.SGD.step", "torch.relu"]


def test_only_kinds_that_were_asked_for_are_given(trace: TraceBuilder) -> None:
    """The names of functions matter for the records of calls only."""
    two_calls(trace.rank())
    spy = Spy("torch.relu", kinds=("call_end", "step"))

    list(watch(read(trace), spy))

    assert [event.kind for event in spy.events] == ["step", "call_end"]


def test_windows_gaps_and_the_end_are_told(trace: TraceBuilder) -> None:
    """Each monitor hears of every window that is over, every gap, and whether all was there."""
    rank = trace.rank()
    rank.step(0)
    rank.gap("disk")
    rank.step(1)
    spy = Spy()

    list(watch(read(trace, complete=False), spy))

    assert spy.said == [1, ("gap", "disk"), ("window", 0), ("window", 1), ("complete", False)]


def test_a_relation_that_fails_is_dropped_and_told(trace: TraceBuilder) -> None:
    """The others see the run to its end."""
    two_calls(trace.rank())
    failing, sound = Spy(fails=KeyError("oops")), Spy()
    watching = watch(read(trace), failing, sound)

    examples = list(watching)

    assert [(fault.relation, fault.error) for fault in watching.faults] == [
        ("Spy0", "KeyError: 'oops'")
    ]
    assert len(failing.events) == 1
    assert [name for name, _ in examples] == ["Spy1", "Spy1"]
    assert ("complete", True) in sound.said
    assert ("complete", True) not in failing.said


def test_an_error_of_the_input_is_not_taken_for_a_fault(trace: TraceBuilder) -> None:
    """What the user can mend is raised."""
    two_calls(trace.rank())

    with pytest.raises(TraceError, match="broken"):
        list(watch(read(trace), Spy(fails=TraceError("broken"))))


def test_candidates_are_proposed_by_relation(trace: TraceBuilder) -> None:
    """A relation that fails proposes nothing; what the run showed is told beside the candidates."""
    two_calls(trace.rank())

    proposals = propose(
        read(trace), {"Sound": Proposing(), "Failing": Proposing(fails=ValueError("oops"))}
    )

    assert proposals.candidates == {"Sound": (CLAIM,)}
    assert [fault.relation for fault in proposals.faults] == ["Failing"]
    assert proposals.seen.steps == 1
    assert proposals.seen.bases == {"torch.optim.SGD.step": ("torch.optim.Optimizer.step",)}
    assert "torch.optim.Optimizer.step" in proposals.seen.functions


def test_who_calls_whom_is_told_beside_the_candidates(trace: TraceBuilder) -> None:
    """None stands for the program itself."""
    rank = trace.rank()
    two_calls(rank)
    with rank.call("torch.optim.SGD.step"), rank.call("torch.relu"):
        pass

    proposals = propose(read(trace), {})

    assert proposals.callers == {
        "torch.optim.SGD.step": {None},
        "torch.relu": {None, "torch.optim.SGD.step"},
    }


class Nonsense(Proposing):
    def __init__(self, claim: object) -> None:
        super().__init__()
        self.claim = claim

    def finish(self) -> Iterable[Params]:
        return [self.claim]  # type: ignore[list-item]


class Deaf(Proposing):
    def __init__(self) -> None:
        super().__init__()
        del self.interests


@pytest.mark.parametrize(
    ("spy", "problem"),
    [
        (Nonsense("f"), "TypeError: proposed 'f', which is no tuple of params"),
        (Nonsense(("f",)), "TypeError: proposed ('f',), which is no tuple of params"),
        (Deaf(), "AttributeError: "),
    ],
)
def test_what_nobody_could_follow_is_a_fault(trace: TraceBuilder, spy: Spy, problem: str) -> None:
    """It is told of the relation, and the others go on."""
    two_calls(trace.rank())

    proposals = propose(read(trace), {"Odd": spy, "Sound": Proposing()})

    assert proposals.candidates == {"Sound": (CLAIM,)}
    (fault,) = proposals.faults
    assert fault.relation == "Odd"
    assert fault.error.startswith(problem)


def test_how_far_it_is_is_told(trace: TraceBuilder) -> None:
    """All that was read, from time to time and at the end."""
    rank = trace.rank()
    for step in range(5000):
        rank.step(step)
    run = read(trace)
    told: list[int] = []

    propose(run, {}, told.append)

    assert told[0] == 4096
    assert sum(told) >= 2 * 5000  # each step, and the end of its window


def test_what_is_made_late_and_fails_costs_the_relation_only(trace: TraceBuilder) -> None:
    """The place of a violation is asked for while the relation can still be dropped."""

    class Late(Spy):
        def on_event(self, event: Event) -> Iterable[Example]:
            yield Example(param=0, held=False, context={}, at=partial(self._place, event))

        @staticmethod
        def _place(event: Event) -> Position:
            raise KeyError(event.kind)

    trace.rank().step(0)
    watching = watch(read(trace), Late(kinds=("step",)), Spy(kinds=("step",)))

    assert [name for name, _ in watching] == ["Spy1"]
    assert [fault.relation for fault in watching.faults] == ["Spy0"]
