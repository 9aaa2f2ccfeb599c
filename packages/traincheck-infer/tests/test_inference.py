"""From traces to invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traincheck_infer.inference import infer_invariants
from traincheck_infer.outcome import Inference, Reason
from traincheck_relations.registry import load_relations
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.reading import open_runs

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Toy, WriteRun


def infer(*folders: Path, toy: Toy | None = None, min_runs: int = 1) -> Inference:
    relations = load_relations() if toy is None else {toy.name: toy}
    return infer_invariants(open_runs(list(folders)), relations, min_runs=min_runs)


def texts(inference: Inference) -> list[str]:
    return [each.text_description for each in inference.invariants]


def test_what_always_held_becomes_an_invariant(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """It says how often it held, in which runs, with which tracker, and always applies."""
    (invariant,) = infer(write_run(steps=6), toy=new_toy()).invariants

    assert invariant.text_description == "It is right about torch.Tensor.backward"
    assert (invariant.num_positive_examples, invariant.num_negative_examples) == (6, 0)
    assert (invariant.runs, invariant.tracker) == (("good",), "subclass")


def test_what_held_sometimes_gets_a_precondition(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """The context tells when the claim holds."""
    (invariant,) = infer(write_run(steps=10), toy=new_toy(right_from=5)).invariants

    assert invariant.text_description.endswith("when the argument late is True")
    assert (invariant.num_positive_examples, invariant.num_negative_examples) == (5, 5)


def test_a_few_exceptions_are_no_rule(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """An argument that tells three occasions from five does so by accident."""
    inference = infer(write_run(steps=8), toy=new_toy(right_from=3))

    assert inference.invariants == ()
    assert inference.left_out == {Reason.NO_PRECONDITION: 1}


@pytest.mark.parametrize(("right_from", "reason"), [(2, Reason.CHANCE), (6, Reason.NEVER)])
def test_what_held_too_seldom_or_never_is_left_out(
    write_run: WriteRun, right_from: int, reason: Reason, new_toy: type[Toy]
) -> None:
    """Four occasions may be a coincidence; none are no reason at all."""
    inference = infer(write_run(steps=6), toy=new_toy(right_from=right_from))

    assert inference.invariants == ()
    assert inference.left_out == {reason: 1}


def test_what_held_before_training_only_is_left_out(tmp_path: Path, new_toy: type[Toy]) -> None:
    """Set-up is done once, in an order that says nothing about another program."""
    trace = TraceBuilder(tmp_path / "run")
    rank = trace.rank()
    for _ in range(9):
        with rank.call("torch.set"):
            pass
    train(rank, 6)
    trace.write()

    inference = infer(tmp_path / "run", toy=new_toy(right_from=-1, function="torch.set"))

    assert inference.left_out == {Reason.BEFORE_TRAINING: 1}


def test_what_only_tells_something_is_no_candidate(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """Nobody is wrong who asks once more, or in another order."""
    inference = infer(write_run(), toy=new_toy(function="torch.is_tensor"))

    assert inference.left_out == {Reason.ONLY_TELLS: 1}
    assert inference.candidates == 1


def test_runs_add_up(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """Three steps in each of two runs are six occasions."""
    (invariant,) = infer(write_run("one", 3), write_run("other", 3), toy=new_toy()).invariants

    assert invariant.num_positive_examples == 6
    assert invariant.runs == ("one", "other")


def test_a_run_that_contradicts_is_named(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """What held in the first run, and not from step 7 on in the second, is no invariant."""
    inference = infer(write_run("short", 6), write_run("long", 12), toy=new_toy(wrong_from=7))

    assert inference.invariants == ()
    assert inference.left_out == {Reason.CONTRADICTED: 1}
    assert inference.contradicted_by == {"long": 1}


def test_an_invariant_may_have_to_apply_in_several_runs(
    tmp_path: Path, write_run: WriteRun, new_toy: type[Toy]
) -> None:
    """A run without an occasion neither contradicts nor counts."""
    other = TraceBuilder(tmp_path / "other", run_id="other")
    other.rank().step(0)
    folders = write_run(), other.write().parent

    (invariant,) = infer(*folders, toy=new_toy()).invariants
    few = infer(*folders, toy=new_toy(), min_runs=2)

    assert invariant.runs == ("good",)
    assert few.left_out == {Reason.FEW_RUNS: 1}


@pytest.mark.parametrize(
    "method",
    [
        "proposer",
        "nonsense",
        "monitor",
        "on_event",
        "requires",
        "describe",
        "likelihood",
        "without_implied",
    ],
)
def test_a_relation_that_fails_costs_its_invariants_only(
    write_run: WriteRun, method: str, new_toy: type[Toy]
) -> None:
    """Whichever of its methods raises: it is named, and the others go on."""
    runs = open_runs([write_run()])
    others = load_relations()
    toy = new_toy(fails=method)

    alone = infer_invariants(runs, others)
    inference = infer_invariants(runs, {**others, toy.name: toy})

    assert alone.invariants
    assert inference.invariants == alone.invariants
    (fault,) = inference.faults
    assert fault.relation == "ToyRelation"
    assert method in fault.error or "not a param" in fault.error
    assert infer(write_run(), toy=new_toy()).faults == ()


@pytest.mark.parametrize("says", [1.5, -1, float("nan")])
def test_a_likelihood_is_a_share(write_run: WriteRun, says: float, new_toy: type[Toy]) -> None:
    """One that is none is a fault of the relation."""
    inference = infer(write_run(), toy=new_toy(says=says))

    assert inference.invariants == ()
    assert "likelihood must be from 0 to 1" in inference.faults[0].error


def test_what_is_most_likely_a_bug_comes_first(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """A relation ranks its claims; one that does not is in between."""
    runs = open_runs([write_run()])
    relations = load_relations()

    for says, place in ((1.0, 0), (0.0, -1)):
        toy = new_toy(says=says)
        invariants = infer_invariants(runs, {**relations, toy.name: toy}).invariants
        assert len(invariants) > 1
        assert invariants[place].relation == toy.name
        assert invariants[place].likelihood == says
        assert invariants[place].params == toy.claim


def test_the_claims_about_a_training_step_are_learnt(write_run: WriteRun) -> None:
    """They speak of the optimizer's base method, and of each parameter that it holds."""
    inference = infer(write_run(unused=["model.bn.weight"]))

    assert (
        "Each call of torch.optim.Optimizer.step changes the data of each torch.nn.Parameter "
        "that it holds"
    ) in texts(inference)
    assert not any("SGD" in text for text in texts(inference))
