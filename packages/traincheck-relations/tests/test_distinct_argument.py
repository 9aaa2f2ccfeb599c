"""`DistinctArgumentRelation`: batches differ between calls, epochs and ranks."""

import tempfile
from itertools import pairwise
from pathlib import Path

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, batch, module
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.distinct_argument import DistinctArgumentRelation
from traincheck_trace_schema.invariants import APIParam, InputOutputParam, ValueParam

RELATION = DistinctArgumentRelation()
COLLATE = "torch.utils.data.default_collate"
NET = "net.Net.forward"
EPOCH = "torch.utils.data.DistributedSampler.set_epoch"


def data(function, name, *, is_input):
    return InputOutputParam(name=name, type="torch.Tensor", api_name=function, is_input=is_input)


def distinct(between):
    """Return the claim about what is loaded."""
    value = data(COLLATE, "output_tensors", is_input=False)
    return value, ValueParam(name="between", value=between)


def given(between, *names):
    """Return the claim about what the model is given."""
    values = [data(NET, name, is_input=True) for name in names]
    return *values, ValueParam(name="between", value=between)


def by_model(between):
    return given(between, "x0")


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def load(rank, content):
    labels = batch((8,), "int64", content="labels")
    add_call(rank, COLLATE, result=[batch((8, 3), content=content), labels])


def call_model(rank, *contents, name="model", **how):
    """Let a model be called with a tensor for each content, and with a flag."""
    rank.function(NET, "torch.nn.Module.forward")
    arguments = {f"x{at}": batch((8, 4), content=content) for at, content in enumerate(contents)}
    add_call(rank, NET, {"flag": 1, **arguments}, of=module("net.Net", name=name), **how)


def test_batches_that_differ_are_proposed(runs):
    """Of one rank, between calls; not of what is always the same, a loss, or another's model."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        load(rank, f"batch {step}")
        call_model(rank, "same")
        call_model(rank, f"batch {step}", name=None)
        add_call(rank, "loss", {"target": batch((8, 4), content=f"target {step}")})

    assert runs.proposals() == {
        distinct("calls"): f"Each call of {COLLATE} returns another result than the call before"
    }


def test_epochs_and_ranks_are_proposed_where_there_are_several(runs):
    """Whether batches come again can't be known of a run with one epoch."""
    for number in range(2):
        runs.trace.world_size = 2
        rank = runs.trace.rank(number)
        for step in range(2):
            add_call(rank, EPOCH, {"epoch": step})
            rank.step(step)
            call_model(rank, f"user {number} {step}", "item")

    assert runs.proposals() == {
        given(between, "x0", "x1"): f"Each call of {NET} is given another x0 and x1 than {other}"
        for between, other in {
            "calls": "the call before",
            "run": "every call before",
            "ranks": "on other ranks",
        }.items()
    }


def test_an_epoch_that_began_but_brought_nothing_is_none(runs):
    """The run ended there: whether its data are the same was not seen."""
    rank = runs.trace.rank()
    for step in range(2):
        rank.step(step)
        load(rank, f"batch {step}")
        add_call(rank, EPOCH, {"epoch": step})

    assert set(runs.proposals()) == {distinct("calls")}


def begin_epoch(rank, line):
    with rank.call("torch.utils.data.DataLoader.__iter__", src=line):
        pass


def test_the_loader_of_an_evaluation_begins_no_second_epoch(runs):
    """It stands in another line; that an evaluation begins is known only at its first batch."""
    rank = runs.trace.rank()
    training, evaluation = (rank.source("train.py", line) for line in (3, 9))
    for step, line in enumerate((training, evaluation)):
        begin_epoch(rank, line)
        rank.step(step)
        load(rank, f"batch {step}")
        call_model(rank, f"batch {step}")
    assert set(runs.proposals()) == {distinct("calls"), by_model("calls")}

    begin_epoch(rank, training)
    rank.step(2)
    load(rank, "batch 2")
    call_model(rank, "batch 2")

    # Whether another program shuffles nobody knows.
    assert set(runs.proposals()) == {distinct("calls"), by_model("calls"), by_model("run")}


def test_all_that_a_model_is_given_is_compared_together(runs):
    """One of two tensors may stay the same."""
    rank = runs.trace.rank()
    for step, item in enumerate(("a", "b", "b")):
        rank.step(step)
        call_model(rank, "user", item)

    assert broken(runs.examples(given("calls", "x0", "x1"))) == [2]


@settings(max_examples=25, deadline=None)
@hypothesis.given(contents=st.lists(st.integers(0, 3), min_size=1, max_size=10))
def test_equal_batches_are_told_in_their_steps(contents):
    """In a row, and anywhere in the run; while there was one content only, the first time."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step, content in enumerate(contents):
            rank.step(step)
            load(rank, str(content))

        in_a_row = runs.examples(distinct("calls"))
        ever = runs.examples(distinct("run"))

    alone = next((at for at, one in enumerate(contents) if one != contents[0]), len(contents))
    left_out = range(2 if len(set(contents)) > 1 else 0, alone)
    pairs = list(enumerate(pairwise(contents), start=1))
    assert broken(in_a_row) == [
        step for step, (before, now) in pairs if before == now and step not in left_out
    ]
    assert broken(ever) == [
        step
        for step, content in enumerate(contents)
        if content in contents[:step] and step not in left_out
    ]


def test_a_program_with_a_single_batch_says_nothing(runs):
    """All data are taken at once, in each step."""
    rank = runs.trace.rank()
    for step in range(4):
        rank.step(step)
        load(rank, "all")
        call_model(rank, "all")

    found = runs.examples(
        *(claim(between) for between in ("calls", "run") for claim in (distinct, by_model))
    )

    assert broken(found) == []


@pytest.mark.parametrize("between", ["calls", "run"])
def test_one_batch_where_the_same_model_had_many_is_told_after_several_steps(runs, between):
    """From the second step on, of the program's own functions; of torch's nobody knows."""
    rank = runs.trace.rank()
    for step in range(7):
        rank.step(step)
        load(rank, "all")
        call_model(rank, "all")

    found = runs.examples(by_model(between), distinct(between))

    assert [(one.param, one.at.window.step) for one in found if not one.held] == [
        (0, 1),
        *((0, step) for step in range(5, 7)),
    ]


def test_two_first_batches_that_are_equal_are_told_once_there_is_another(runs):
    """Where workers have the same data, the second batch is what is wrong."""
    rank = runs.trace.rank()
    for step, content in enumerate(("a", "a", "b", "c")):
        rank.step(step)
        load(rank, content)

    found = runs.examples(distinct("calls"))

    assert [(one.at.window.step, one.held) for one in found] == [(1, False), (2, True), (3, True)]


def test_what_is_said_names_the_earlier_step(runs):
    """The epoch that begins again with the first batch."""
    rank = runs.trace.rank()
    load(rank, "first")
    for step, content in enumerate(("second", "first")):
        rank.step(step)
        load(rank, content)

    found = runs.examples(distinct("run"))

    assert [one.happened for one in found] == [
        "",
        f"{COLLATE} had the same data as a call in step -1",
    ]


def test_what_is_looked_at_without_gradients_says_nothing(runs):
    """Validation in the middle of training, of the same data each time."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        call_model(rank, f"batch {step}")
        call_model(rank, "validation", ctx={"grad_mode": False})

    assert verdicts(runs.examples(given("run", "x0"), given("calls", "x0"))) == [True] * 5


def test_start_up_and_evaluation_say_nothing(runs):
    """A batch that is looked at before training; test data, which is the same each time."""
    rank = runs.trace.rank()
    load(rank, "look")
    load(rank, "look")
    rank.step(0)
    load(rank, "a")
    rank.stage("evaluation")
    rank.eval_step(0)
    load(rank, "a")
    load(rank, "a")
    rank.stage("training")
    rank.step(1)
    load(rank, "b")

    assert verdicts(runs.examples(distinct("calls"), distinct("run"))) == [True] * 4


def test_what_may_be_equal_by_accident_says_nothing(runs):
    """A last batch of few samples; labels; what has no digest, or changes with the model."""
    rank = runs.trace.rank()
    for step in range(2):
        rank.step(step)
        add_call(rank, COLLATE, result=batch((3, 16), content="samples"))
        add_call(rank, COLLATE, result=batch((8,), "int64", content="labels"))
        add_call(rank, COLLATE, result=batch((8, 3)))
        add_call(rank, COLLATE, result=batch((8, 8), content="x", requires_grad=True))

    assert runs.examples(distinct("calls"), distinct("run")) == []


def test_the_call_before_is_the_one_that_was_made_before(runs):
    """Two networks of one type take turns: what one is given first is none of the other's."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        add_call(rank, COLLATE, result=batch((8, 8), content=f"batch {step}"))
        add_call(rank, COLLATE, result=batch((8, 8), content="code", requires_grad=True))
        add_call(rank, COLLATE, result=batch((8, 8), content=f"batch {step}"))

    assert verdicts(runs.examples(distinct("calls"))) == [True] * 2


def test_many_integers_are_data(runs):
    """Tokens of text."""
    rank = runs.trace.rank()
    for step, content in enumerate(("text", "text", "other")):
        rank.step(step)
        add_call(rank, COLLATE, result=batch((8, 16), "int64", content=content))

    assert broken(runs.examples(distinct("calls"))) == [1]


def test_a_gap_separates_calls(runs):
    """What was lost may have lain between."""
    rank = runs.trace.rank()
    for step in range(2):
        rank.step(step)
        load(rank, "same")
        rank.gap("sampling")

    assert runs.examples(distinct("calls")) == []


def two_ranks(runs, contents, *, lost=None):
    """Let two ranks load these contents, a pair for each step."""
    runs.trace.world_size = 2
    for number in range(2):
        rank = runs.trace.rank(number)
        for step, pair in enumerate(contents):
            rank.step(step)
            load(rank, pair[number])
            if (number, step) == lost:
                rank.gap("disk")
        rank.step(len(contents))


@settings(max_examples=15, deadline=None)
@hypothesis.given(
    contents=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=6)
)
def test_ranks_that_have_the_same_data_are_told_in_their_steps(contents):
    """A sampler that does not know the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        two_ranks(runs, [tuple(map(str, pair)) for pair in contents])

        found = runs.examples(distinct("ranks"))

    same = [step for step, (one, other) in enumerate(contents) if one == other]
    assert len(found) == len(contents)
    assert broken(found) == same
    assert all(one.happened.endswith("the same data as rank 0") for one in found if not one.held)


def test_a_window_in_which_a_rank_misses_records_is_no_occasion(runs):
    """Which of its calls fits which of the other rank is not known."""
    two_ranks(runs, [("a", "a"), ("b", "b")], lost=(1, 0))

    assert broken(runs.examples(distinct("ranks"))) == [1]


def test_one_rank_has_none_to_differ_from(runs):
    """A program without ranks gives no occasion."""
    rank = runs.trace.rank()
    for step in range(3):
        rank.step(step)
        load(rank, "same")

    assert runs.examples(distinct("ranks")) == []


def test_what_it_needs_is_recorded():
    """The result, or the argument."""
    assert RELATION.requires(distinct("run")).results == {COLLATE}
    assert RELATION.requires(given("run", "x0", "x1")).functions == {NET: {"x0", "x1"}}
    assert RELATION.requires(given("run", "x0")).contexts == {"grad_mode", "inference_mode"}


@pytest.mark.parametrize(
    "params",
    [
        distinct("days"),
        (APIParam(api_full_name=COLLATE), distinct("run")[1]),
        (distinct("run")[0], *given("run", "x0")),
        distinct("run")[1:],
    ],
)
def test_other_params_are_refused(params):
    """It must be said between what a value differs."""
    with pytest.raises(TypeError, match="DistinctArgumentRelation takes"):
        RELATION.monitor([params])
