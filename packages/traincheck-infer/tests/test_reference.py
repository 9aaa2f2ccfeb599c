"""Where an invariant held first: what of the reference run it shows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_infer.candidates import Candidate
from traincheck_infer.first_held import MAX_RECORD_BYTES, MAX_RECORDS, trimmed
from traincheck_infer.inference import infer_invariants
from traincheck_infer.tally import Tally, frozen
from traincheck_relations.api import Example, Position, RecordRef
from traincheck_relations.conditions.preconditions import ALWAYS
from traincheck_relations.registry import load_relations
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.codec import dumps
from traincheck_trace_schema.invariants import Clause, ConditionGroup, Conjunction
from traincheck_trace_schema.reading import open_runs
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Toy, WriteRun

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.values import Scalar

MODEL = "run.model"


def example(step: int, *, held: bool = True, **context: Scalar) -> Example:
    at = Position(rank=0, window=Window(step, 0, -1), stage="training", source=f"train.py:{step}")
    record = {"kind": "call_end", "seq": 7, "step": step}
    refs = [RecordRef("trace_r0_p1.json", 0, record)] * (MAX_RECORDS + 1)
    return Example(param=0, held=held, context=context, at=at, evidence=lambda: tuple(refs))


def tally(*examples: Example) -> Tally:
    made = Tally()
    for each in examples:
        made.add(each, frozen(each.context))
    return made


def candidate(**runs: Tally) -> Candidate:
    made = Candidate(())
    for run_id in sorted(runs):
        made.add(run_id, runs[run_id])
    return made


def of_model(value: str) -> ConditionGroup:
    clause = Clause(type="constant", prop_name=MODEL, values=(value,))
    return ConditionGroup(preconditions=(Conjunction(clauses=(clause,)),))


def invariants(*folders: Path) -> tuple[Invariant, ...]:
    return infer_invariants(open_runs(list(folders)), load_relations()).invariants


def test_it_is_the_first_occasion_of_the_first_run_in_which_it_held() -> None:
    """The runs are taken by their ids; one in which it did not hold is none of its own."""
    made = candidate(
        c=tally(example(0)), b=tally(example(3), example(4)), a=tally(example(0, held=False))
    )

    reference = made.reference(ALWAYS)

    assert reference is not None
    assert (reference.run, reference.at.step, reference.at.source) == ("b", 3, "train.py:3")


def test_an_occasion_in_training_is_preferred() -> None:
    """What the set-up does says less about training."""
    first = candidate(a=tally(example(-1), example(-1), example(2))).reference(ALWAYS)
    only = candidate(a=tally(example(-1))).reference(ALWAYS)

    assert first is not None
    assert only is not None
    assert (first.at.step, only.at.step) == (2, -1)


def test_its_precondition_was_met() -> None:
    """A claim about one model did not begin with another one."""
    made = candidate(
        a=tally(example(0, **{MODEL: "x"}), example(1, **{MODEL: "y"})),
        b=tally(example(0, **{MODEL: "y"}), example(5, **{MODEL: "z"})),
    )

    of_y, of_z = made.reference(of_model("y")), made.reference(of_model("z"))

    assert of_y is not None
    assert of_z is not None
    assert (of_y.run, of_y.at.step, of_z.run, of_z.at.step) == ("a", 1, "b", 5)
    assert made.reference(of_model("w")) is None


def test_few_records_show_it() -> None:
    """Without what only says which records of the trace they are."""
    reference = candidate(a=tally(example(0))).reference(ALWAYS)

    assert reference is not None
    assert len(reference.evidence) == MAX_RECORDS
    assert reference.evidence[0].record == {"kind": "call_end", "step": 0}


def test_a_plugin_that_cant_show_it_loses_nothing_else() -> None:
    """That it held is known without the records."""

    def fail() -> tuple[RecordRef, ...]:
        raise ValueError("no records")

    at = Position(rank=0, window=Window(0, 0, -1), stage="training")
    broken = Example(param=0, held=True, context={}, at=at, evidence=fail)

    reference = candidate(a=tally(broken)).reference(ALWAYS)

    assert reference is not None
    assert reference.evidence == ()


def test_each_invariant_tells_it(write_run: WriteRun) -> None:
    """With the records, whichever relation it is of, and the same run for all."""
    found = invariants(write_run("b"), write_run("a"))

    references = [one.reference for one in found if one.reference is not None]
    assert len(references) == len(found) > 0
    assert {one.run for one in references} == {"a"}
    assert all(one.at.step >= 0 and one.evidence for one in references)


def test_a_comparison_of_ranks_shows_two_of_them(tmp_path: Path) -> None:
    """One beside the other, as where they differ."""
    trace = TraceBuilder(tmp_path / "run", world_size=2)
    for rank in range(2):
        train(trace.rank(rank), 6)

    found = invariants(trace.write().parent)

    shown = {
        tuple(each.rank for each in one.reference.evidence)
        for one in found
        if one.relation == "ConsistencyRelation" and one.reference is not None
    }
    assert shown == {(0, 1)}


def test_it_is_no_part_of_the_id(write_run: WriteRun, new_toy: type[Toy]) -> None:
    """The same invariant of another run has another reference, and the same id."""
    toy = new_toy()
    one, other = (
        infer_invariants(open_runs([write_run(name)]), {toy.name: toy}).invariants[0]
        for name in ("a", "b")
    )

    assert one.reference != other.reference
    assert one.id == other.id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=400),
    lambda inner: (
        st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30)
    ),
    max_leaves=200,
)


@given(st.dictionaries(st.text(max_size=20), JSON, max_size=30))
def test_a_record_is_cut_to_a_size(record: dict) -> None:
    """However large it is, deep or wide."""
    assert len(dumps(trimmed(record)).encode()) <= MAX_RECORD_BYTES


@pytest.mark.parametrize("value", ["x" * 300, list(range(40)), {str(n): n for n in range(40)}])
def test_what_was_cut_says_so(value: object) -> None:
    """As a value in a trace does."""
    (cut,) = trimmed({"args": value}).values()

    assert "cut" in str(cut) or "length" in str(cut)


def test_a_large_field_leaves_the_others() -> None:
    """What is told of the function is not lost for a long argument."""
    wide = {str(n): "x" * 150 for n in range(12)}

    left = trimmed({"function": "f", "args": wide, "pid": os.getpid()})

    assert left == {"function": "f", "args": {"cut": "too large"}, "pid": os.getpid()}
