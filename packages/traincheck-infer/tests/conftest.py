"""Traces of small runs that train well, and a relation of which each method can fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from traincheck_relations.api import Example, Interests, Position, Requirements
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.invariants import APIParam, Params

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from traincheck_relations.api import Event, Gap
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.window import Window

BACKWARD = "torch.Tensor.backward"
CLAIM: Params = (APIParam(api_full_name=BACKWARD),)


class Toy:
    """Claims something about each call of a function, and is right from a step on.

    In the runs of `wrong_in` it is never right. `fails` is the name of the method that raises.
    """

    name = "ToyRelation"
    group = "call"

    def __init__(
        self,
        right_from: int = 0,
        *,
        function: str = BACKWARD,
        wrong_from: int | None = None,
        fails: str = "",
        says: float | None = None,
    ) -> None:
        self.right_from = right_from
        self.wrong_from = wrong_from
        self.function = function
        self.fails = fails
        self.says = says
        self.claim: Params = (APIParam(api_full_name=function),)
        self.interests = Interests(kinds=frozenset(("call_end",)), functions=frozenset((function,)))

    def proposer(self) -> Proposing:
        self.may_fail("proposer")
        return Proposing(self)

    def monitor(self, params: Sequence[Params]) -> Watching:
        assert tuple(params) == (self.claim,)
        self.may_fail("monitor")
        return Watching(self)

    def requires(self, params: Params) -> Requirements:
        self.may_fail("requires")
        return Requirements(functions={params[0].api_full_name: frozenset()})

    def describe(self, params: Params) -> str:
        self.may_fail("describe")
        return f"It is right about {params[0].api_full_name}"

    def likelihood(self, params: Params) -> float:
        assert params == self.claim
        self.may_fail("likelihood")
        return 0.5 if self.says is None else self.says

    def without_implied(self, invariants: Sequence[Invariant]) -> Sequence[Invariant]:
        self.may_fail("without_implied")
        return invariants

    def may_fail(self, method: str) -> None:
        if self.fails == method:
            raise ValueError(f"cannot do {method}")


class _Following:
    def __init__(self, toy: Toy) -> None:
        self.toy = toy
        self.interests = toy.interests


class Proposing(_Following):
    def on_event(self, event: Event) -> None:
        del event

    def finish(self) -> Iterable[Params]:
        if self.toy.fails == "nonsense":
            return [("not a param",)]  # type: ignore[list-item]
        return [self.toy.claim]


class Watching(_Following):
    def on_event(self, event: Event) -> Iterable[Example]:
        self.toy.may_fail("on_event")
        step = event.window.step
        context = {"call.arg.late": step >= self.toy.right_from}
        at = Position(rank=event.rank, window=event.window, stage=event.stage)
        is_wrong = self.toy.wrong_from is not None and step >= self.toy.wrong_from
        yield Example(
            param=0, held=step >= self.toy.right_from and not is_wrong, context=context, at=at
        )

    def on_window_end(self, window: Window) -> Iterable[Example]:
        del window
        return ()

    def on_gap(self, gap: Gap) -> None:
        pass

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        assert complete
        return ()


class WriteRun(Protocol):
    def __call__(
        self, name: str = ..., steps: int = ..., *, unused: Sequence[str] = ...
    ) -> Path: ...


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Return a function that writes the trace of a run; its name is run id and folder."""

    def write(name: str = "good", steps: int = 6, *, unused: Sequence[str] = ()) -> Path:
        trace = TraceBuilder(tmp_path / name, run_id=name)
        train(trace.rank(), steps, unused=unused)
        return trace.write().parent

    return write


@pytest.fixture
def new_toy() -> type[Toy]:
    """Return the class of the relation whose methods can fail."""
    return Toy
