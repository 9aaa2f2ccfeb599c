"""`TrainingModeRelation`: flags of training follow whether the model learns."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, batch, module
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.training_mode import TrainingModeRelation
from traincheck_trace_schema.invariants import APIParam, InputOutputParam, ValueParam

RELATION = TrainingModeRelation()
DROPOUT = "torch.nn.functional.dropout"
NORM = "torch.nn.functional.batch_norm"
ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
FORWARD = "torch.nn.Module.forward"


def claim(mode, function=DROPOUT, name="training"):
    given = InputOutputParam(name=name, type="bool", api_name=function, is_input=True)
    return given, ValueParam(name="mode", value=mode)


FLAG = (
    InputOutputParam(
        name="self",
        type="torch.nn.Module",
        additional_path=("training",),
        api_name=FORWARD,
        is_input=True,
    ),
    ValueParam(name="mode", value="learning"),
)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def call_dropout(rank, training, **how):
    add_call(rank, DROPOUT, {"p": 0.5, "training": training}, **how)


def evaluate(rank, *, training=False, stage="evaluation"):
    rank.stage(stage)
    rank.eval_step(0)
    call_dropout(rank, training, ctx={"grad_mode": False})
    rank.stage("training")


def call_norm(rank, training, *, frozen):
    add_call(rank, NORM, {"training": training, "weight": batch((3,), requires_grad=not frozen)})


def test_a_flag_that_is_on_in_training_and_off_in_evaluation_follows_the_stage(runs):
    """It is proposed once, for both sides, and holds on both."""
    rank = runs.trace.rank()
    rank.stage("training")
    for step in range(3):
        rank.step(step)
        call_dropout(rank, training=True)
        evaluate(rank)

    proposals = runs.proposals()

    assert proposals == {
        claim("stage"): f"Each call of {DROPOUT} has training True whenever the model learns, and "
        "False in evaluation"
    }
    assert verdicts(runs.examples(claim("stage"))) == [True] * 6


def test_a_number_of_the_programs_own_follows_no_mode(runs):
    """The rate at which a decoder is given the truth is no rate of dropout."""
    rank = runs.trace.rank()
    rank.stage("training")
    for step in range(3):
        rank.step(step)
        add_call(rank, "__main__.Decoder.forward", {"forcing": 0.5, "is_sampled": True})
        rank.stage("evaluation")
        rank.eval_step(0)
        off = {"forcing": 0.0, "is_sampled": False}
        add_call(rank, "__main__.Decoder.forward", off, ctx={"grad_mode": False})
        rank.stage("training")

    assert [one.name for one, _ in runs.proposals()] == ["is_sampled"]


@settings(max_examples=25, deadline=None)
@given(steps=st.integers(2, 8), data=st.data())
def test_a_model_left_in_evaluation_is_told_from_the_first_step_on(steps, data):
    """Whatever the number of steps: the steps after the forgotten `train()` are broken."""
    since = data.draw(st.integers(0, steps - 1))
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        rank.stage("training")
        for step in range(steps):
            rank.step(step)
            call_dropout(rank, training=step < since)
            evaluate(rank)

        found = runs.examples(claim("stage"))

    assert broken(found) == list(range(since, steps))
    assert found[2 * since].happened == (
        f"{DROPOUT} was called with training False while the model learns"
    )


def test_a_model_left_in_training_during_evaluation_is_told(runs):
    """Testing and inference count as evaluation, with gradients or without."""
    rank = runs.trace.rank()
    rank.stage("training")
    rank.step(0)
    call_dropout(rank, training=True)
    evaluate(rank, training=True, stage="testing")

    first, second = runs.examples(claim("stage"))

    assert (first.held, second.held) == (True, False)
    assert second.happened == f"{DROPOUT} was called with training True in evaluation"


def test_what_is_no_learning_says_nothing(runs):
    """Before the first step, with gradients off in training, or with a frozen weight."""
    rank = runs.trace.rank()
    rank.stage("training")
    call_dropout(rank, training=False)
    rank.step(0)
    call_dropout(rank, training=False, ctx={"grad_mode": False})
    call_dropout(rank, training=False, ctx={"inference_mode": True})
    call_norm(rank, training=False, frozen=True)
    add_call(rank, DROPOUT, {"p": 0.5})

    assert runs.examples(claim("stage"), claim("learning"), claim("learning", NORM)) == []


def test_a_frozen_norm_stays_in_evaluation(runs):
    """Fine-tuning: frozen layers are judged by their own claim, trained ones by another."""
    rank = runs.trace.rank()
    rank.stage("training")
    for step in range(3):
        rank.step(step)
        call_norm(rank, training=step == 2, frozen=True)
        call_norm(rank, training=True, frozen=False)

    assert set(runs.proposals()) == {claim("frozen", NORM), claim("learning", NORM)}
    assert broken(runs.examples(claim("frozen", NORM), claim("learning", NORM))) == [2]


def test_a_rate_of_dropout_follows_where_gradients_are_off(runs):
    """Attention has no flag: its rate is zero. There is no stage of evaluation in this program."""
    rank = runs.trace.rank()
    rank.stage("training")
    followed = claim("grad_mode", ATTENTION, "dropout_p")
    for step in range(3):
        rank.step(step)
        add_call(rank, ATTENTION, {"dropout_p": 0.2, "scale": 1.0})
        add_call(rank, ATTENTION, {"dropout_p": 0.0, "scale": 1.0}, ctx={"grad_mode": False})
    proposals = set(runs.proposals())
    rank.step(3)
    add_call(rank, ATTENTION, {"dropout_p": 0.2}, ctx={"grad_mode": False})

    assert proposals == {followed}
    assert broken(runs.examples(followed)) == [3]


def test_what_sets_the_mode_follows_nothing(runs):
    """`train(False)` is `eval()`, wherever it is called."""
    rank = runs.trace.rank()
    rank.stage("training")
    for step in range(2):
        rank.step(step)
        add_call(rank, "torch.nn.Module.train", {"mode": True})
        add_call(rank, "torch.nn.Module.train", {"mode": False}, ctx={"grad_mode": False})

    assert runs.proposals() == {}


def test_a_constant_argument_follows_nothing(runs):
    """`inplace` and `p` are settings of the program; only `training` says what it means."""
    rank = runs.trace.rank()
    rank.stage("training")
    rank.step(0)
    add_call(rank, DROPOUT, {"p": 0.5, "training": True, "inplace": True})

    assert set(runs.proposals()) == {claim("learning")}


def test_the_flag_of_modules_is_claimed_of_all_of_them(runs):
    """Once two types of module were seen to train; a loss that is never switched off is none."""
    rank = runs.trace.rank()
    for type_ in ("Linear", "LSTM"):
        rank.function(f"torch.nn.{type_}.forward", FORWARD)
    rank.stage("training")
    for step in range(3):
        rank.step(step)
        for type_ in ("Linear", "LSTM"):
            of = module(f"torch.nn.{type_}", training=step < 2)
            add_call(rank, f"torch.nn.{type_}.forward", {"input": batch()}, of=of)

    found = runs.examples(FLAG)

    assert runs.proposals() == {FLAG: "Each module is in training mode whenever the model learns"}
    assert broken(found) == [2, 2]
    assert found[-1].happened.endswith("was called in evaluation mode while the model learns")
    assert not any(name.startswith("call.module.") for name in found[0].context)


@pytest.mark.parametrize("is_on", [False, True])
def test_a_module_in_training_mode_without_gradients_is_told(runs, is_on):
    """Of the model in whose run they were in evaluation mode there."""
    rank = runs.trace.rank()
    rank.function("__main__.Net.forward", FORWARD)
    rank.variable("model.weight", requires_grad=True)
    rank.stage("training")
    for step in range(3):
        rank.step(step)
        for training, gradients in ((True, True), (is_on and step > 0, False)):
            of = module("__main__.Net", training=training, name="model")
            context = {"grad_mode": gradients}
            add_call(rank, "__main__.Net.forward", {"x": batch()}, of=of, ctx=context)

    (claim,) = (one for one in runs.proposals() if len(one) > 2)
    found = runs.examples(claim)

    assert (
        runs.proposals()[claim] == "Each module is in evaluation mode where gradients are disabled"
    )
    assert broken(found) == ([1, 2] if is_on else [])
    assert len(found) == 3
    assert runs.examples((*claim[:2], ValueParam(name="parameters", value="another"))) == []


def test_what_is_computed_again_in_the_backward_pass_is_no_evaluation(runs):
    """A checkpoint disables gradients meanwhile."""
    rank = runs.trace.rank()
    rank.stage("training")
    for step in range(3):
        rank.step(step)
        call_dropout(rank, training=True)
        call_dropout(rank, training=False, ctx={"grad_mode": False})
        with rank.call("torch.utils.checkpoint.checkpoint"):
            call_dropout(rank, training=True, ctx={"grad_mode": False})

    assert claim("grad_mode") in runs.proposals()
    assert verdicts(runs.examples(claim("grad_mode"))) == [True] * 6


def in_a_module(runs, *names, learns=("model.head.weight",)):
    """Call dropout, off, in modules of these names, the outermost first, of such a model."""
    rank = runs.trace.rank()
    rank.function("Net.forward", FORWARD)
    for name in ("model.backbone.0.weight", "model.head.weight"):
        rank.variable(name, requires_grad=name in learns)
    rank.stage("training")
    rank.step(0)
    with contextlib.ExitStack() as stack:
        for name in names:
            of = module("Net", training=False, name=name)
            stack.enter_context(rank.call("Net.forward", of=of))
        call_dropout(rank, training=False)
    return runs.examples(claim("learning"), FLAG)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("model.backbone",), id="a frozen backbone"),
        pytest.param(("model.backbone.1",), id="a layer of it that has no parameters"),
        pytest.param((None,), id="a teacher beside the model"),
        pytest.param((None, None), id="a layer of the teacher"),
    ],
)
def test_what_is_frozen_or_beside_the_model_may_stay_in_evaluation(runs, names):
    """Nothing learns in it, whether or not gradients pass through."""
    assert in_a_module(runs, *names) == []


def test_a_teacher_that_the_model_keeps_in_a_list_may_stay_in_evaluation(runs):
    """It has no name; only the model around it is judged."""
    (example,) = in_a_module(runs, "model", None)

    assert (example.param, example.held) == (1, False)


@pytest.mark.parametrize("name", ["model", "model.head", "model.dropout"])
def test_a_part_that_learns_is_broken_in_evaluation(runs, name):
    """A layer without parameters belongs to what is around it."""
    assert verdicts(in_a_module(runs, name)) == [False, False]


def test_a_part_that_is_unfrozen_learns_from_then_on(runs):
    """What counts is what requires a gradient at the call."""
    rank = runs.trace.rank()
    rank.function("Net.forward", FORWARD)
    weight = rank.variable("model.weight", requires_grad=False)
    rank.stage("training")
    for step, requires_grad in enumerate((False, True, False)):
        rank.step(step)
        rank.change(weight, requires_grad=requires_grad)
        add_call(rank, "Net.forward", of=module("Net", training=False, name="model"))

    assert [one.at.window.step for one in runs.examples(FLAG)] == [1]


def test_an_average_that_is_not_tracked_says_nothing_in_evaluation(runs):
    """Whether its dropout is on is nobody's business but its own."""
    rank = runs.trace.rank()
    rank.function("Net.forward", FORWARD)
    rank.variable("model.weight", requires_grad=True)
    rank.stage("evaluation")
    rank.eval_step(0)
    with rank.call("Net.forward", of=module("Net", name=None)):
        call_dropout(rank, training=True)

    assert runs.examples(claim("stage")) == []


def test_what_is_judged_is_no_part_of_the_context(runs):
    """Else "training is on when training is on" would be inferred where it is not always on."""
    rank = runs.trace.rank()
    rank.stage("training")
    rank.step(0)
    call_dropout(rank, training=True)

    (found,) = runs.examples(claim("learning"))

    assert "call.arg.training" not in found.context
    assert found.context["run.stage"] == "training"


def test_what_it_needs_is_recorded():
    """The argument, the modules around it, what tells what learns, and if gradients are on."""
    needs = RELATION.requires(claim("stage"))

    assert needs.functions == {DROPOUT: {"training", "weight"}, FORWARD: frozenset()}
    assert needs.variables == {"parameter": {"requires_grad"}}
    assert needs.contexts == {"grad_mode", "inference_mode"}
    assert RELATION.requires(FLAG).functions == {FORWARD: frozenset()}


@pytest.mark.parametrize(
    "params",
    [claim("often"), (APIParam(api_full_name=DROPOUT), ValueParam(name="mode", value="stage"))],
)
def test_other_params_are_refused(params):
    """A mode that is not known, or a function alone."""
    with pytest.raises(TypeError, match="TrainingModeRelation takes"):
        RELATION.monitor([params])
