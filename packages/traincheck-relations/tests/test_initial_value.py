"""`InitialValueRelation`: what a value is drawn for begins training with elements that differ."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.models import STEP, Runs, broken
from traincheck_relations.testing.traces import TraceBuilder, optimizer, tensor
from traincheck_relations.variables.initial_value import InitialValueRelation
from traincheck_trace_schema.invariants import OccasionParam, ValueParam, VarTypeParam

RELATION = InitialValueRelation()
MIXER = "__main__.Mixer"
JUDGED = 10  # training steps
ONES, DRAWN = "ones", "drawn"


def began(*, equal, shape=(8,), **fields):
    """Return what a trace tells of a parameter that it tells first."""
    told = tensor("begin", shape=shape)["tensor"]
    return {"tensor": {**told, "facts": {"all_equal": equal}, **fields}}


def add_mixers(model, *contents, **of_data):
    """Add so many mixers to a model, whose `scale` begins with these contents."""
    for number, content in enumerate(contents):
        name = f"model.mixers.{number}"
        model.add(name, role="module", type_=MIXER, training=True)
        model.parameter(f"{name}.scale", data=began(equal=content == ONES, **of_data))
    return model


def mixers(runs, *contents, **of_data):
    """Begin a run of a model with mixers."""
    return add_mixers(runs.model(), *contents, **of_data)


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path / "run"))


@pytest.fixture
def claim(tmp_path):
    """What is learnt from a run with two mixers that began well."""
    good = Runs(RELATION, TraceBuilder(tmp_path / "good"))
    mixers(good, DRAWN, DRAWN).train(range(2))
    (params,) = good.proposals()
    return params


def where(examples):
    return [(one.at.window.step, one.at.variable, one.held) for one in examples]


@settings(deadline=None)
@given(steps=st.integers(1, 14), layers=st.integers(1, 4), data=st.data())
def test_a_layer_that_begins_with_equal_elements_is_named(steps, layers, data):
    """From the first step on; with other layers of the type, which began well, it is no news."""
    contents = data.draw(st.lists(st.sampled_from((ONES, DRAWN)), min_size=layers, max_size=layers))
    with tempfile.TemporaryDirectory() as folder:
        good = Runs(RELATION, TraceBuilder(Path(folder) / "good"))
        mixers(good, *[DRAWN] * layers).train(range(steps))
        ((params, said),) = good.proposals().items()
        bad = Runs(RELATION, TraceBuilder(Path(folder) / "bad"))
        mixers(bad, *contents).train(range(steps))

        examples = bad.examples(params)

        assert broken(good.examples(params)) == []
    judged = range(min(steps, JUDGED))
    wrong = [f"model.mixers.{number}.scale" for number in range(layers) if contents[number] == ONES]
    named = wrong or ["model.mixers.0.scale"]
    assert said == f"The scale of each {MIXER} begins training with elements that differ"
    assert where(examples) == [(step, name, not wrong) for step in judged for name in named]
    if wrong:
        assert examples[0].happened == (
            f"all elements of {wrong[0]} were equal when training began"
        )
        assert examples[0].evidence[0].record["names"] == (wrong[0],)


@pytest.mark.parametrize("contents", [(ONES, ONES), (ONES, DRAWN)])
def test_where_one_begins_with_equal_elements_nothing_is_claimed(runs, contents):
    """Neither that they differ, nor that they are equal: a checkpoint breaks that, and is right."""
    mixers(runs, *contents).train(range(3))

    assert not runs.proposals()


def test_of_a_process_that_differs_from_another_nothing_is_claimed(runs):
    """Each rank is judged by itself."""
    for rank, content in enumerate((DRAWN, ONES)):
        add_mixers(runs.model(rank), content).train(range(2))

    assert not runs.proposals()


def test_the_rank_that_begins_wrong_is_named(runs, claim):
    """The others are not blamed."""
    for rank, content in enumerate((DRAWN, ONES)):
        add_mixers(runs.model(rank), content, content).train(range(1))

    wrong = [one for one in runs.examples(claim) if not one.held]

    assert {one.at.rank for one in wrong} == {1}


def test_another_model_gives_no_occasion(runs, claim):
    """Though it has such layers: whether a value is drawn is up to the model."""
    mixers(runs, ONES, ONES, ONES).train(range(3))

    assert runs.examples(claim) == []


def test_a_model_that_is_not_trained_gives_no_occasion(runs, claim):
    """Nothing began."""
    model = mixers(runs, ONES, ONES)
    model.rank.step(0)
    model.look("step_end")
    model.end()

    assert runs.examples(claim) == []


def test_what_was_loaded_after_it_was_told_is_not_known(runs, claim):
    """Where the record of the change does not say whether all elements are equal."""
    model = mixers(runs, ONES, DRAWN)
    model.move("model.mixers.0.scale")
    model.train(range(2))

    assert where(runs.examples(claim)) == [(step, "model.mixers.1.scale", True) for step in (0, 1)]


@pytest.mark.parametrize(("before", "written"), [(DRAWN, ONES), (ONES, DRAWN)])
def test_what_was_written_before_training_is_what_it_began_with(runs, claim, before, written):
    """As by `apply`: where the trace tells of it, that counts, and not what was there first."""
    model = mixers(runs, before, before)
    for number in range(2):
        model.change(f"model.mixers.{number}.scale", data=began(equal=written == ONES))
    model.train(range(2))

    held = [one.held for one in runs.examples(claim)]
    assert held == ([False] * 4 if written == ONES else [True] * 2)


def test_what_the_first_step_writes_is_no_beginning(runs, claim):
    """Though the trace may tell of its elements."""
    model = mixers(runs, DRAWN, DRAWN)
    model.rank.step(0)
    with model.stepping() as call:
        model.change("model.mixers.0.scale", during=call, data=began(equal=True))
    model.train(range(1, 2))

    assert runs.examples(claim)
    assert broken(runs.examples(claim)) == []


def test_what_an_optimizer_changes_later_is_no_beginning(runs, claim):
    """The first step shows what it was given, and that is what counts in the next ones, too."""
    mixers(runs, ONES, DRAWN).train(range(3), gradients=("model.mixers.0.scale",))

    assert broken(runs.examples(claim)) == [0, 1, 2]


@pytest.mark.parametrize(
    "of_data",
    [
        {"shape": (3,)},
        {"shape": (None, 8)},
        {"placements": ["Shard(0)"]},
        {"facts": {"in_unit_interval": True}},
        {"facts": None},
    ],
    ids=["too few", "not one size", "a piece", "not told", "no facts"],
)
def test_what_is_not_known_of_a_parameter_says_nothing(runs, claim, of_data):
    """Few elements may be equal by accident, and so may those of a piece."""
    mixers(runs, ONES, ONES, **of_data).train(range(2))

    assert runs.examples(claim) == []


def test_a_piece_that_megatron_made_says_nothing(runs, claim):
    """It is marked as one."""
    model = mixers(runs, ONES, ONES)
    for number in range(2):
        model.change(f"model.mixers.{number}.scale", tensor_model_parallel=True)
    model.train(range(2))

    assert runs.examples(claim) == []


def test_a_name_that_is_not_the_programs_is_no_parameter(runs):
    """FSDP has a piece of several under one name."""
    model = runs.model()
    model.parameter("model._flat_param", data=began(equal=False))
    model.train(range(2))

    assert not runs.proposals()


@pytest.mark.parametrize("first", [1, 7])
def test_a_trace_that_begins_later_gives_no_occasion(runs, claim, first):
    """What it tells first has been trained."""
    mixers(runs, ONES, ONES).train(range(first, first + 3))

    assert runs.examples(claim) == []


def test_a_model_that_is_followed_late_gives_no_occasion(runs, claim):
    """An optimizer has stepped before that, perhaps that of this model."""
    model = runs.model()
    model.rank.step(0)
    with model.rank.call("torch.optim.SGD.step", of=optimizer("optimizer0")):
        pass
    add_mixers(model, ONES, ONES).train(range(1, 3))

    assert runs.examples(claim) == []


def test_a_look_after_the_step_gives_no_occasion(runs, claim):
    """As the sampler looks: what an optimizer has changed is no beginning."""
    model = mixers(runs, ONES, ONES)
    model.rank.step(0)
    with model.rank.call("torch.optim.SGD.step", of=optimizer("optimizer0")) as call:
        model.look("end", call)

    assert runs.examples(claim) == []


def test_a_first_step_that_was_left_out_gives_no_occasion(runs, claim):
    """Sampling left out where training began; nor is anything proposed of it."""
    model = runs.model()
    model.rank.step(0)
    model.rank.records[-1] = {**model.rank.records[-1], "sampled": False}
    add_mixers(model, ONES, ONES)
    model.train(range(1, 3))

    assert runs.examples(claim) == []
    assert not runs.proposals()


@pytest.mark.parametrize(("reason", "told"), [("disk", 0), ("sampling", 2)])
def test_lost_records_give_no_occasion(runs, claim, reason, told):
    """The model is told anew after them; an evaluation that sampling left out trains nothing."""
    model = runs.model()
    model.rank.gap(reason)
    add_mixers(model, ONES, ONES)
    model.train(range(1), gradients=())

    assert len(runs.examples(claim)) == told


def test_steps_that_are_left_out_later_say_nothing(runs, claim):
    """What training began with is known, and counts where there is an occasion again."""
    model = mixers(runs, ONES, DRAWN)
    model.train(range(2))
    model.rank.gap("sampling")
    model.train(range(5, 7))

    assert broken(runs.examples(claim)) == [0, 1, 5, 6]


def test_several_optimizers_make_one_occasion_of_a_step(runs, claim):
    """As those of a GAN do."""
    model = mixers(runs, ONES, DRAWN)
    model.rank.step(0)
    for name in ("optimizer0", "optimizer1"):
        with model.stepping(name):
            pass

    assert broken(runs.examples(claim)) == [0]


def test_of_training_that_was_resumed_nothing_is_claimed(runs):
    """All its parameters have been trained; a run that is not resumed begins otherwise."""
    model = mixers(runs, DRAWN, DRAWN)
    function = "torch.optim.Optimizer.load_state_dict"
    with model.rank.call(function, of=optimizer("optimizer0")):
        pass
    model.train(range(3))

    assert not runs.proposals()


def test_what_is_needed_is_recorded(claim):
    """The data before each step of an optimizer, not after it."""
    needs = RELATION.requires(claim)

    assert needs.variables["parameter"] == {"data"}
    assert needs.observe_before == {STEP}
    assert not needs.observe


@pytest.mark.parametrize(
    "params",
    [
        (),
        (VarTypeParam(var_type=MIXER, attr_name="scale"), OccasionParam(phase="step_end")),
        (
            VarTypeParam(var_type=MIXER, attr_name="scale"),
            ValueParam(name="all_equal", value=True),
            ValueParam(name="parameters", value="0123456789abcdef"),
        ),
    ],
)
def test_other_params_are_refused(params):
    """Above all that all elements are equal."""
    with pytest.raises(TypeError, match="InitialValueRelation takes a VarTypeParam"):
        RELATION.describe(params)
