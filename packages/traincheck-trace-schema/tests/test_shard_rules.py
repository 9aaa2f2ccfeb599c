"""The rules between the records of a shard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_trace_schema.validation.ids import SeenIds
from traincheck_trace_schema.validation.shard import ShardRules

HEADER = {
    "kind": "header",
    "run_id": "run",
    "rank": 0,
    "world_size": 1,
    "recording": {"mode": "full"},
}
SIGNED = {"names": ["w"], "role": "parameter", "type": "t", "storage": 0}


def _findings(*records: dict[str, Any], header: bool = True) -> tuple[list[str], list[str]]:
    """Return problems and hints of records, which are given places one after the other."""
    rules = ShardRules()
    problems, hints = rules.take(HEADER) if header else ([], [])
    for seq, record in enumerate(records):
        placed = record["kind"] not in {"header", "footer"}
        place = {"thread": 1, "seq": seq, "step": 0} if placed else {}
        found = rules.take({**place, **record})
        problems += found[0]
        hints += found[1]
    return problems, hints


def _told(*records: dict[str, Any], header: bool = True) -> list[str]:
    """Return what is wrong with records, which are given places one after the other."""
    return _findings(*records, header=header)[0]


def _function(name: str = "f") -> dict[str, Any]:
    return {"kind": "function", "name": name}


def _begin(call: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "call_begin", "id": call, "function": "f", **fields}


def _end(call: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "call_end", "id": call, "function": "f", **fields}


def _var(event: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "var", "event": event, "id": 1, **SIGNED, **fields}


def _observe(**fields: Any) -> dict[str, Any]:
    about = {"phase": "step_end", "roles": ["parameter"], "attributes": []}
    return {"kind": "observe", **about, **fields}


def _ended(**counts: int) -> dict[str, Any]:
    return {"kind": "footer", "records": {"header": 1, "step": 1, **counts}}


def _gap(reason: str) -> dict[str, Any]:
    return {"kind": "gap", "reason": reason}


GRAD = _var("changed", attributes={"grad": None})
STEP = {"kind": "step", "sampled": True}
TENSOR = {"shape": [1], "dtype": "float32", "device": "cpu"}
COUNTED = {"kind": "footer", "records": {"header": 1, "function": 1, "call_begin": 1}}


@pytest.mark.parametrize(
    "records",
    [
        [_function(), _begin(1), _begin(2, parent=1), _end(2), _end(1)],
        [_function(), _begin(1), {"kind": "call_error", "id": 1, "function": "f"}],
        [_var("baseline"), GRAD, _var("gone"), _var("appeared"), _var("gone")],
        [{"kind": "source", "id": 0}, _function(), _begin(1, src=0), _var("baseline", src=0)],
        [_function(), _begin(1), _observe(call=1, phase="end"), _var("appeared", call=1)],
        [_var("baseline", attributes={"grad": 1}), _observe(attributes=["grad"])],
        [_var("baseline"), GRAD, _observe(attributes=["grad"])],
        [_var("baseline"), _var("gone"), _observe(attributes=["grad"])],
        [_var("baseline"), _var("changed", names=["m.w"]), _var("changed", held_by=[1])],
        [STEP, {**STEP, "eval_pass": 1, "eval_step": 0}, {**STEP, "eval_pass": 1}],
        [STEP, HEADER, {**STEP, "step": 1}],
        [_var("baseline"), {**GRAD, "between": [0, 1]}],
        [STEP, STEP, {"kind": "footer", "records": {"header": 1, "step": 2}}],
        [_function(), _begin(1), COUNTED],
    ],
)
def test_what_is_right_is_not_told(records: list[dict[str, Any]]) -> None:
    """Nesting, changes, windows and counts as a recorder writes them."""
    assert _told(*records) == []


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([{**STEP, "seq": 5}, {**STEP, "seq": 5}], "field 'seq' must rise; got 5 after 5"),
        ([{**STEP, "step": 2}, *[{**STEP, "step": 1}] * 3], "goes back to step 1 from step 2"),
        (
            [{**STEP, "eval_pass": 1}, STEP],
            "goes back to step 0 before its evaluation from step 0 after pass 1 of evaluation",
        ),
        (
            [{**STEP, "eval_pass": 1}, {**STEP, "eval_pass": 1, "eval_step": 2}],
            "goes back to step 0, pass 1, evaluation step 2 from step 0 after pass 1",
        ),
        ([_end(1)], "ends the call 1, which is not open"),
        ([_function(), _begin(1), _end(1), _end(1)], "ends the call 1, which is not open"),
        ([_function(), _begin(1), _end(1), _begin(1)], "field 'id' must be new; a call 1 began "),
        ([_function(), _begin(1), _end(1, function="g")], "ends the call 1 of 'f' as one of 'g'"),
        ([_function(), _begin(1, parent=7)], "field 'parent' must be a call that is open; got 7"),
        ([_begin(1)], "no function record told 'f' before its first call"),
        ([_function(), _function()], "tells the function 'f' again"),
        ([{"kind": "source", "id": 0}] * 2, "tells the source 0 again"),
        ([_function(), _begin(1, src=3)], "no source record told the source 3 before"),
        ([_var("changed")], "variable 1 is changed before a record said that it is there"),
        ([_var("baseline"), _var("gone"), GRAD, GRAD], "variable 1 is changed before a rec"),
        ([_var("baseline"), _var("changed")], "variable 1 (w) is changed, and nothing says in wh"),
        (
            [_var("baseline"), *[_observe(attributes=["grad"])] * 3],
            "covers 'grad', which variable 1 (w) never told",
        ),
        (
            [_var("baseline"), _var("baseline", id=2), _observe(attributes=["grad"])],
            "covers 'grad', which variable 1 (w) never told, nor did 1 more",
        ),
        ([_observe(phase="begin")], "field 'call' must be the call whose begin it is; got null"),
        (
            [_function(), _begin(1), _observe(phase="end", call=1, function="g"), _end(1)],
            "field 'function' must be 'f', that of the call 1; got 'g'",
        ),
        ([{**HEADER, "rank": 1}], "field 'rank' must be below 'world_size', 1; got 1"),
        ([{**HEADER, "groups": {"dp": [0, 4]}}], "group 'dp' has the rank 4, in a world of 1"),
        (
            [{**HEADER, "recording": {"mode": "plan"}}],
            "field 'recording.plan_id' must name the plan, since the mode is 'plan'",
        ),
        (
            [{"kind": "footer", "records": {"header": 1}, "gaps": 3}],
            "field 'gaps' must be 0, the gap records; got 3",
        ),
        ([_var("baseline", call=7)], "field 'call' must be a call that is open; got 7"),
        ([_var("baseline", between=[3, 3])], "field 'between' must rise; got [3, 3]"),
        ([_var("baseline", between=[3, 4])], "field 'between' must end at 'seq', 0; got [3, 4]"),
        ([_observe(call=7), _end(7)], "field 'call' must be a call that is open; got 7"),
        ([{**HEADER, "run_id": "other"}], "field 'run_id' must stay \"run\" in a shard; got "),
        ([STEP, {"kind": "footer", "records": {"header": 1}}], "counts 0 records of kind step; re"),
        (
            [{"kind": "footer", "records": {"header": 1, "gap": 2}}],
            "counts 2 records of kind gap",
        ),
        (
            [{"kind": "footer", "records": {"header": 1}}, STEP],
            "a record (step) after the footer",
        ),
    ],
)
def test_what_is_wrong_is_told_once(records: list[dict[str, Any]], reason: str) -> None:
    """Each rule, broken alone."""
    (problem,) = _told(*records)

    assert problem.startswith(reason)


def test_a_shard_begins_with_its_header() -> None:
    """That it does not is told once."""
    (problem,) = _told(STEP, STEP, COUNTED, header=False)

    assert problem == "the first line must be the header; got a record (step)"


LOST = [
    _end(1),
    _begin(2, parent=9, src=9),
    _var("changed", call=9, src=9),
    _observe(call=9, phase="begin", attributes=["data"]),
]


@pytest.mark.parametrize("reason", ["disk", "queue", "encoding", "fault", "limit"])
def test_what_was_lost_is_not_missed(reason: str) -> None:
    """After records were lost, others may refer to them."""
    assert _told(_gap(reason), *LOST) == []


def test_what_was_not_sampled_was_not_lost() -> None:
    """A gap of sampling holds no record that others refer to."""
    assert len(_told(_gap("sampling"), *LOST)) == 5


def test_a_damaged_line_is_not_missed() -> None:
    """What a line said that cannot be read is unknown, and so is how many there were."""
    rules = ShardRules()
    rules.take(HEADER)

    rules.miss()

    assert rules.take({"thread": 1, "seq": 0, "step": 0, **_end(1)}) == ([], [])
    assert rules.take({"kind": "footer", "records": {"header": 1, "step": 1}}) == ([], [])


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([STEP, {**_function(), "step": 1}, STEP | {"step": 1}], "is in step 1, which no step rec"),
        (
            [STEP, _function(), _begin(1), _ended(function=1, call_begin=1)],
            "the call 1 of 'f' never ended",
        ),
        ([STEP, _var("baseline"), _ended(var=1)], "has var records and no observe record"),
        ([STEP, _var("baseline"), _var("baseline", names=["b"])], "variable 1 was w and is b now"),
        (
            [STEP, _var("baseline", attributes={"data": {"tensor": TENSOR}})],
            "attribute 'data' is a tensor without digest or layout",
        ),
    ],
)
def test_what_is_probably_a_mistake_is_hinted_at(
    records: list[dict[str, Any]], reason: str
) -> None:
    """It is legal: no problem; and if records were lost, there is no hint either."""
    problems, (hint,) = _findings(*records)

    assert problems == []
    assert hint.startswith(reason)
    assert _findings(_gap("disk"), *records)[1] == []


@pytest.mark.parametrize(
    "changed",
    [
        {"digest": "a:1"},
        {"layout": "sparse_coo"},
        {"placements": []},
        {"device": "meta"},
        {"shape": [0]},
    ],
)
def test_a_tensor_may_have_no_content(changed: dict[str, Any]) -> None:
    """Then no digest is missed."""
    attributes = {"data": {"tensor": {**TENSOR, **changed}}}

    assert _findings(STEP, _var("baseline", attributes=attributes)) == ([], [])


def test_the_order_is_kept_after_a_gap_too() -> None:
    """Losing records excuses no disorder."""
    assert len(_told(_gap("disk"), {**STEP, "step": 4}, {**STEP, "seq": 1, "step": 3})) == 2


@given(st.lists(st.integers(0, 40)))
def test_seen_ids_are_a_set(numbers: list[int]) -> None:
    """An id is new exactly when it was not added before."""
    ids, seen = SeenIds(), set[int]()

    for number in numbers:
        assert ids.add(number) == (number not in seen)
        seen.add(number)


def test_seen_ids_take_little_memory() -> None:
    """Ids in a row are one range; where holes are many, the lowest are forgotten."""
    row, holes = SeenIds(), SeenIds()

    for number in range(30_000):
        row.add(number)
        holes.add(2 * number)

    assert len(row._starts) == 1
    assert len(holes._starts) <= 10_000
    assert not holes.add(2 * 29_999)
