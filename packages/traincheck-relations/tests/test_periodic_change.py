"""`VarPeriodicChangeRelation`: variables change in each training step, or every n of them."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import MEAN, NORM, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.periodic_change import VarPeriodicChangeRelation
from traincheck_trace_schema.invariants import Invariant, ValueParam, VarNameParam, VarTypeParam

RELATION = VarPeriodicChangeRelation()


def each_step(name="running_mean", every=1):
    return VarTypeParam(var_type=NORM, attr_name=name), ValueParam(name="every", value=every)


EACH_STEP = each_step()
NEVER = each_step(every=0)


def average(every, layout):
    return (
        VarNameParam(var_name="average", attr_name="data"),
        ValueParam(name="parameters", value=layout),
        ValueParam(name="every", value=every),
    )


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def train_with_average(model, steps, updates):
    """Train; beside the model an average of its weights is updated after some of the steps."""
    model.variables["average.fc.weight"] = model.rank.variable(
        "average.fc.weight", data=tensor("start"), grad=None, requires_grad=False
    )
    for step in steps:
        moves = [MEAN, "average.fc.weight"] if step in updates else [MEAN]
        model.train([step], moves=moves)
    model.end()


def test_statistics_that_move_in_each_step_are_proposed_and_hold(runs):
    """The claim names the type of the module and its buffer, which other programs have too."""
    model = runs.model()
    model.train(range(6))
    model.end()

    proposals = runs.proposals()

    assert list(proposals) == [EACH_STEP]
    assert proposals[EACH_STEP] == (
        f"The running_mean of each {NORM} changes in each training step"
    )
    assert verdicts(runs.examples(EACH_STEP)) == [True] * 6


@settings(deadline=None)
@given(steps=st.integers(3, 9), data=st.data())
def test_the_step_in_which_statistics_stand_still_is_told(steps, data):
    """Whichever it is, and no other."""
    stuck = data.draw(st.integers(0, steps - 1))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        model = runs.model()
        for step in range(steps):
            model.train([step], moves=() if step == stuck else (MEAN,))
        model.end()

        examples = runs.examples(EACH_STEP)

    assert broken(examples) == [stuck]
    (one,) = [example for example in examples if not example.held]
    assert (one.at.variable, one.happened) == (MEAN, f"{MEAN} did not change in a training step")


def test_a_model_that_was_left_in_evaluation_mode_is_told(runs):
    """Its statistics stand still, and the mode is said to be the reason."""
    model = runs.model()
    model.train(range(2))
    model.train(range(2, 4), moves=(), model=False, bn=False)
    model.end()

    *_, last = runs.examples(EACH_STEP)

    assert last.happened == (
        f"{MEAN} did not change in a training step (its module is in evaluation mode)"
    )


def test_a_module_that_was_frozen_on_purpose_says_nothing(runs):
    """It is in evaluation mode, while the model is in training mode."""
    model = runs.model()
    model.train(range(2))
    model.train(range(2, 6), moves=(), bn=False)
    model.end()

    assert verdicts(runs.examples(EACH_STEP)) == [True, True]


def test_steps_with_evaluation_and_the_last_one_say_nothing(runs):
    """Modes change in the former; of the latter nobody knows if it was whole."""
    model = runs.model()
    model.train([0])
    model.train([1, 2], moves=(), is_evaluated=True)
    model.train([3], moves=())

    assert verdicts(runs.examples(EACH_STEP)) == [True]


@pytest.mark.parametrize("reason", ["sampling", "disk"])
def test_a_step_of_which_records_are_missing_says_nothing(runs, reason):
    """Lost, or left out: in the middle of a step, nobody knows what changed in it."""
    model = runs.model()
    model.train([0])
    model.rank.step(1)
    model.look("step_end")
    model.rank.gap(reason)
    with model.stepping():
        pass
    model.look("step_end")
    model.end()

    assert verdicts(runs.examples(EACH_STEP)) == [True]


def test_after_steps_that_were_left_out_the_next_one_is_judged(runs):
    """Each step says by itself whether statistics moved in it."""
    model = runs.model()
    model.train([0])
    model.rank.step(4)
    model.rank.gap("sampling")
    with model.stepping():
        pass
    model.look("step_end")
    model.end()

    assert broken(runs.examples(EACH_STEP)) == [4]


def test_statistics_of_a_module_in_evaluation_mode_stay(runs):
    """Where they move nevertheless, the step is told."""
    model = runs.model()
    model.change("model.bn", training=False)
    model.train(range(4), moves=())
    model.train([4])
    model.end()

    assert NEVER in runs.proposals()
    assert broken(runs.examples(NEVER)) == [4]
    assert len(runs.examples(NEVER)) == 5


def test_a_module_whose_mode_changed_in_the_step_says_nothing_of_evaluation_mode(runs):
    """Nobody knows which came first."""
    model = runs.model()
    model.train([0], moves=())
    model.train([1], bn=False)
    model.end()

    assert runs.examples(NEVER) == []


def test_a_step_in_which_no_optimizer_stepped_says_nothing(runs):
    """A pass over data may be skipped; so is a step whose end was not looked at."""
    model = runs.model()
    model.train([0])
    model.rank.step(1)
    model.look("step_end")
    model.rank.step(2)
    with model.stepping():
        pass
    model.end()

    assert [one.at.window.step for one in runs.examples(EACH_STEP)] == [0]


def test_what_was_not_looked_at_says_nothing(runs):
    """A step's end without buffers does not tell that they stayed."""
    model = runs.model()
    model.train([0])
    model.rank.step(1)
    with model.stepping():
        pass
    model.rank.observe("step_end")
    model.end()

    assert [one.at.window.step for one in runs.examples(EACH_STEP)] == [0]


def test_the_period_of_an_average_is_found(runs):
    """Every third step, of this model; the claim does not speak about others."""
    train_with_average(runs.model(), range(16), range(2, 16, 3))

    (claim,) = [params for params in runs.proposals() if len(params) > 2]

    assert claim[2].value == 3 or claim[1].value == 3
    assert RELATION.describe(claim) == "The parameters of average change every 3 training steps"
    assert verdicts(runs.examples(claim)) == [True] * 4
    other = average(3, "another model")
    assert runs.examples(other) == []


@pytest.mark.parametrize(
    ("updates", "step"), [((2, 5, 8, 11, 12), 12), ((2, 5, 8, 14), 11)], ids=["early", "missing"]
)
def test_a_change_that_comes_early_or_not_is_told(tmp_path, updates, step):
    """At the step in which it came, or should have."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    train_with_average(good.model(), range(16), range(2, 16, 3))
    (claim,) = [params for params in good.proposals() if len(params) > 2]
    bad = Runs(RELATION, TraceBuilder(tmp_path / "bad"))
    train_with_average(bad.model(), range(15), updates)

    assert broken(bad.examples(claim)) == [step]


@pytest.mark.parametrize(
    ("updates", "is_judged"),
    [
        pytest.param(range(2, 16, 3), False, id="follows more seldom"),
        pytest.param((5, 14), False, id="twice only"),
        pytest.param(range(9, 16), True, id="begins late"),
    ],
)
def test_when_an_average_begins_and_how_often_it_follows_is_a_setting(tmp_path, updates, is_judged):
    """A period that the run never kept is not asked for, in each step or not."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    train_with_average(good.model(), range(16), range(16))
    (claim,) = [params for params in good.proposals() if len(params) > 2]
    other = Runs(RELATION, TraceBuilder(tmp_path / "other"))
    train_with_average(other.model(), range(16), updates)

    found = other.examples(claim)

    assert bool(found) is is_judged
    assert all(verdicts(found))


def test_an_average_that_follows_no_longer_is_told(tmp_path):
    """At the first step in which it stays as it was."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    train_with_average(good.model(), range(16), range(16))
    (claim,) = [params for params in good.proposals() if len(params) > 2]
    bad = Runs(RELATION, TraceBuilder(tmp_path / "bad"))
    train_with_average(bad.model(), range(16), range(9))

    assert broken(bad.examples(claim)) == [9]


@pytest.mark.parametrize(
    ("learnt", "steps", "told"),
    [
        pytest.param(range(16), 16, [0], id="from the start"),
        pytest.param(range(2, 16, 3), 31, [2], id="every third step"),
        pytest.param(range(2, 16, 3), 20, [], id="too short to know"),
        pytest.param(range(9, 16), 16, [], id="it begins late, by what was learnt"),
    ],
)
def test_an_average_that_never_follows_is_told_at_the_end(tmp_path, learnt, steps, told):
    """At the first step in which it should have followed, where it did so from the start."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    train_with_average(good.model(), range(16), learnt)
    (claim,) = [params for params in good.proposals() if len(params) > 2]
    bad = Runs(RELATION, TraceBuilder(tmp_path / "bad"))
    train_with_average(bad.model(), range(steps), ())

    found = bad.examples(claim)

    assert broken(found) == told
    assert all(one.happened == f"average never changed in {steps} training steps" for one in found)


@pytest.mark.parametrize("updates", [(2, 4, 7, 8, 13), (2, 5, 8, 11, 13, 15)])
def test_irregular_changes_have_no_period(runs, updates):
    """Such as those of a schedule that is drawn by chance, or that changes."""
    train_with_average(runs.model(), range(17), updates)

    assert [params for params in runs.proposals() if len(params) > 2] == []


def test_statistics_of_a_model_that_no_optimizer_trains_say_nothing(runs):
    """Those of an average are copied now and then."""
    model = runs.model()
    model.add("average.bn", role="module", type_=NORM, training=True)
    model.add("average.bn.running_mean", role="buffer", type_="torch.Tensor", data=tensor("start"))
    model.parameter("average.bn.weight")
    model.hold("average.bn.weight")
    model.train(range(3))
    model.end()

    assert {one.at.variable for one in runs.examples(EACH_STEP)} == {MEAN}


def test_what_the_optimizer_does_with_the_module_is_known(runs):
    """Whether its weights are held, and require a gradient."""
    model = runs.model()
    model.train([0])
    model.rank.step(1)
    model.hold("model.bn.weight")
    model.change("model.bn.weight", requires_grad=False)
    with model.stepping():
        pass
    model.look("step_end")
    model.end()

    first, second = (one.context for one in runs.examples(EACH_STEP))

    assert (first["module.held"], first["module.requires_grad"]) == (True, True)
    assert (second["module.held"], second["module.requires_grad"]) == (False, False)


def test_of_buffers_that_change_alike_one_is_kept():
    """All statistics of a module move by the same forward passes."""
    names = ("running_var", "num_batches_tracked", "running_mean")
    claims = [
        Invariant(
            id=name, text_description="", relation="R", params=each_step(name), precondition={}
        )
        for name in names
    ]

    assert [one.id for one in RELATION.without_implied(claims)] == ["num_batches_tracked"]


def test_other_params_are_refused():
    """A claim without a period says nothing."""
    with pytest.raises(TypeError, match="'every'"):
        RELATION.monitor([(VarTypeParam(var_type=NORM, attr_name="running_mean"),)])
