"""From traces to invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traincheck_infer.inference import Inference, infer_invariants
from traincheck_relations.api import Example, Interests, Position
from traincheck_relations.registry import load_relations
from traincheck_trace_schema.invariants import APIParam, Params
from traincheck_trace_schema.reading import open_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from conftest import WriteRun

    from traincheck_relations.api import Event, Gap
    from traincheck_trace_schema.window import Window

CLAIM: Params = (APIParam(api_full_name="torch.Tensor.backward"),)


class Toy:
    """Claims something about each backward, and is right from a step on."""

    name = "ToyRelation"
    group = "call"
    interests = Interests(
        kinds=frozenset(("call_end",)), functions=frozenset(("torch.Tensor.backward",))
    )

    def __init__(self, right_from: int = 0, fails_in: str = "") -> None:
        self.right_from = right_from
        self.fails_in = fails_in

    def proposer(self) -> Toy:
        return Proposing(self.right_from)

    def monitor(self, params: Sequence[Params]) -> Toy:
        assert params == (CLAIM,)
        return self

    def describe(self, params: Params) -> str:
        return f"It is right about {params[0].api_full_name}"

    def on_event(self, event: Event) -> Iterable[Example]:
        if self.fails_in and self.fails_in in event.record["function"]:
            raise ValueError("cannot be right about this")
        step = event.window.step
        context = {"call.arg.late": step >= self.right_from}
        at = Position(rank=event.rank, window=event.window, stage=event.stage)
        yield Example(param=0, held=step >= self.right_from, context=context, at=at)

    def on_window_end(self, window: Window) -> Iterable[Example]:
        del window
        return ()

    def on_gap(self, gap: Gap) -> None:
        pass

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        assert complete
        return ()


class Proposing(Toy):
    def on_event(self, event: Event) -> None:
        del event

    def finish(self) -> Iterable[Params]:
        return [CLAIM]


def infer(*folders: Path, toy: Toy | None = None) -> Inference:
    relations = load_relations() if toy is None else {toy.name: toy}
    return infer_invariants(open_runs(list(folders)), relations)


def texts(inference: Inference) -> list[str]:
    return [each.text_description for each in inference.invariants]


def test_what_always_held_becomes_an_invariant(write_run: WriteRun) -> None:
    """It says how often it held, in which runs, with which tracker, and always applies."""
    (invariant,) = infer(write_run(steps=6), toy=Toy()).invariants

    assert invariant.text_description == "It is right about torch.Tensor.backward"
    assert (invariant.num_positive_examples, invariant.num_negative_examples) == (6, 0)
    assert (invariant.runs, invariant.tracker) == (("good",), "subclass")


def test_what_held_sometimes_gets_a_precondition(write_run: WriteRun) -> None:
    """The context tells when the claim holds."""
    (invariant,) = infer(write_run(steps=10), toy=Toy(right_from=5)).invariants

    assert invariant.text_description.endswith("when the argument late is True")
    assert (invariant.num_positive_examples, invariant.num_negative_examples) == (5, 5)


def test_a_few_exceptions_are_no_rule(write_run: WriteRun) -> None:
    """An argument that tells three occasions from five does so by accident."""
    assert infer(write_run(steps=8), toy=Toy(right_from=3)).invariants == ()


@pytest.mark.parametrize("right_from", [2, 6])
def test_what_held_too_seldom_or_never_is_left_out(write_run: WriteRun, right_from: int) -> None:
    """Four occasions may be a coincidence; none are no reason at all."""
    assert infer(write_run(steps=6), toy=Toy(right_from=right_from)).invariants == ()


def test_runs_add_up(write_run: WriteRun) -> None:
    """Three steps in each of two runs are six occasions."""
    (invariant,) = infer(write_run("one", 3), write_run("other", 3), toy=Toy()).invariants

    assert invariant.num_positive_examples == 6
    assert invariant.runs == ("one", "other")


def test_a_relation_that_fails_is_left_out_and_told(write_run: WriteRun) -> None:
    """What it would have seen nobody knows."""
    inference = infer(write_run(), toy=Toy(fails_in="backward"))

    assert inference.invariants == ()
    assert [fault.relation for fault in inference.faults] == ["ToyRelation"]


def test_the_claims_about_a_training_step_are_learnt(write_run: WriteRun) -> None:
    """They speak of the optimizer's base method, and of each parameter that it holds."""
    inference = infer(write_run(unused=["model.bn.weight"]))

    assert (
        "Each call of torch.optim.Optimizer.step changes the data of each torch.nn.Parameter "
        "when the variable is held by the optimizer that is called"
    ) in texts(inference)
    assert not any("SGD" in text for text in texts(inference))


def test_the_order_of_runs_does_not_matter(write_run: WriteRun) -> None:
    """The same runs give the same invariants, byte for byte."""
    folders = [write_run("one"), write_run("other", 9, unused=["model.bn.weight"])]

    assert infer(*folders).invariants == infer(*reversed(folders)).invariants
