"""`ThresholdRelation`: what is returned keeps to a bound that was given."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_relations.testing.calls import add_call, batch
from traincheck_relations.testing.models import Runs, broken
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_relations.values.threshold import ThresholdRelation
from traincheck_trace_schema.invariants import APIParam, InputOutputParam

RELATION = ThresholdRelation()
GENERATE = "generate"


def part(name, path=None, *, is_input=False):
    return InputOutputParam(
        name=name,
        index=0 if path else None,
        type="torch.Tensor" if path else "float",
        additional_path=path,
        api_name=GENERATE,
        is_input=is_input,
    )


def bounded(name, path=None):
    bound, result = part(name, is_input=True), part("output_tensors", path)
    api = APIParam(api_full_name=GENERATE)
    return (bound, api, result) if name.startswith("max") else (result, api, bound)


LENGTH = bounded("max_length", ("shape", -1))


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path))


def generate(rank, result, **bounds):
    add_call(rank, GENERATE, bounds, result=result)


def scalar(value):
    described = batch(())
    described["tensor"]["data"] = [value]
    return described


def test_a_bound_that_results_come_near_to_is_proposed(runs):
    """A length of a tensor, a number, a tensor of one element; from above and from below."""
    rank = runs.trace.rank()
    generate(rank, batch((2, 9), "int64"), max_length=10)
    generate(rank, 1.1, min_loss=1.0)
    generate(rank, scalar(4.9), max_norm=5.0)

    assert runs.proposals() == {
        LENGTH: "Each call of generate returns a length of at most max_length",
        bounded("min_loss"): "Each call of generate returns a value of at least min_loss",
        bounded(
            "max_norm", ("value",)
        ): "Each call of generate returns a value of at most max_norm",
    }


def test_what_is_never_near_or_not_always_kept_is_not_proposed(runs):
    """Nor a bound by a flag, by a number whose name says nothing, or of another kind of number."""
    rank = runs.trace.rank()
    generate(rank, 1.0, max_value=100.0, width=1.0, max_pool=True, min_max=1.0)
    generate(rank, batch((2, 9)), max_norm=9.0)
    generate(rank, 1.0, max_steps=1)
    generate(rank, 2.0, max_steps=1)

    assert runs.proposals() == {}


def test_a_bound_of_zero_is_no_fault(runs):
    """Near to zero is zero itself."""
    rank = runs.trace.rank()
    generate(rank, 0.0, max_value=0.0, min_value=-0.5)

    assert set(runs.proposals()) == {bounded("max_value")}


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_results_beyond_the_bound_are_told_in_their_steps(lengths):
    """Whatever the bound is: it is that of the call."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(RELATION, TraceBuilder(Path(folder)))
        rank = runs.trace.rank()
        for step, length in enumerate(lengths):
            rank.step(step)
            generate(rank, batch((2, length)), max_length=10)

        found = runs.examples(LENGTH)

    assert len(found) == len(lengths)
    assert broken(found) == [step for step, length in enumerate(lengths) if length > 10]


def test_what_happened_names_the_bound(runs):
    """In words, from above and from below."""
    rank = runs.trace.rank()
    generate(rank, 3, max_value=2, min_value=4)

    found = runs.examples(bounded("max_value"), bounded("min_value"))

    assert [one.happened for one in found] == [
        "generate returned 3, more than max_value, which was 2",
        "generate returned 3, less than min_value, which was 4",
    ]


def test_what_is_no_number_is_no_occasion(runs):
    """A bound that was left out, or is None; a result that is a flag."""
    rank = runs.trace.rank()
    generate(rank, batch((2, 3)))
    generate(rank, batch((2, 3)), max_length=None)
    generate(rank, result=True, max_value=0.5)

    assert runs.examples(LENGTH, bounded("max_value")) == []


def test_what_it_needs_is_recorded():
    """The bound and the result."""
    needs = RELATION.requires(bounded("min_value"))

    assert (needs.functions, needs.results) == ({GENERATE: {"min_value"}}, {GENERATE})


def test_other_params_are_refused():
    """Two results."""
    result, api = part("output_tensors"), APIParam(api_full_name=GENERATE)
    with pytest.raises(TypeError, match="ThresholdRelation takes"):
        RELATION.monitor([(result, api, result)])


def test_a_call_that_keeps_to_it_can_be_shown_too(runs):
    """By the records of its begin and its end, as one that does not."""
    rank = runs.trace.rank()
    generate(rank, batch((2, 9), "int64"), max_length=10)
    generate(rank, batch((2, 11), "int64"), max_length=10)

    kept, exceeded = runs.examples(LENGTH)

    assert (kept.held, exceeded.held) == (True, False)
    for one in (kept, exceeded):
        assert [ref.record["kind"] for ref in one.evidence] == ["call_begin", "call_end"]
