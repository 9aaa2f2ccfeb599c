"""The rules between the records of a shard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincheck_trace_schema.validation.ids import SeenIds
from traincheck_trace_schema.validation.shard import ShardRules

HEADER = {"kind": "header", "run_id": "run"}
SIGNED = {"names": ["w"], "role": "parameter", "type": "t", "storage": 0}


def _told(*records: dict[str, Any], header: bool = True) -> list[str]:
    """Return what is wrong with records, which are given places one after the other."""
    rules = ShardRules()
    found = rules.take(HEADER) if header else []
    for seq, record in enumerate(records):
        placed = record["kind"] not in {"header", "footer"}
        place = {"thread": 1, "seq": seq, "step": 0} if placed else {}
        found += rules.take({**place, **record})
    return found


def _function(name: str = "f") -> dict[str, Any]:
    return {"kind": "function", "name": name}


def _begin(call: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "call_begin", "id": call, "function": "f", **fields}


def _end(call: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "call_end", "id": call, "function": "f", **fields}


def _var(event: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "var", "event": event, "id": 1, **SIGNED, **fields}


def _gap(reason: str) -> dict[str, Any]:
    return {"kind": "gap", "reason": reason}


STEP = {"kind": "step", "sampled": True}
COUNTED = {"kind": "footer", "records": {"header": 1, "function": 1, "call_begin": 1}}


@pytest.mark.parametrize(
    "records",
    [
        [_function(), _begin(1), _begin(2, parent=1), _end(2), _end(1)],
        [_function(), _begin(1), {"kind": "call_error", "id": 1, "function": "f"}],
        [_var("baseline"), _var("changed"), _var("gone"), _var("appeared"), _var("gone")],
        [{"kind": "source", "id": 0}, _function(), _begin(1, src=0), _var("baseline", src=0)],
        [_function(), _begin(1), {"kind": "observe", "call": 1}, _var("appeared", call=1)],
        [STEP, {**STEP, "eval_pass": 1, "eval_step": 0}, {**STEP, "eval_pass": 1}],
        [STEP, HEADER, {**STEP, "step": 1}],
        [_var("baseline"), _var("changed", between=[0, 1])],
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
        ([{**STEP, "step": 2}, {**STEP, "step": 1}], "goes back to step 1, pass 0 from step 2, "),
        ([{**STEP, "eval_pass": 1}, STEP], "goes back to step 0, pass 0 from step 0, pass 1"),
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
        ([_var("baseline"), _var("gone"), _var("changed")], "variable 1 is changed before a rec"),
        ([_var("baseline", call=7)], "field 'call' must be a call that is open; got 7"),
        ([_var("baseline", between=[3, 3])], "field 'between' must rise; got [3, 3]"),
        ([{"kind": "observe", "call": 7}], "field 'call' must be a call that is open; got 7"),
        ([{**HEADER, "run_id": "other"}], "field 'run_id' must stay 'run' in a shard; got 'other'"),
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
    assert _told(STEP, STEP, header=False) == ["field 'kind' must be 'header' in the first line"]


LOST = [
    _end(1),
    _begin(2, parent=9, src=9),
    _var("changed", call=9, src=9),
    {"kind": "observe", "call": 9},
]


@pytest.mark.parametrize("reason", ["disk", "queue", "encoding", "fault", "limit"])
def test_what_was_lost_is_not_missed(reason: str) -> None:
    """After records were lost, others may refer to them."""
    assert _told(_gap(reason), *LOST) == []


def test_what_was_not_sampled_was_not_lost() -> None:
    """A gap of sampling holds no record that others refer to."""
    assert len(_told(_gap("sampling"), *LOST)) == 7


def test_a_damaged_line_is_not_missed() -> None:
    """What a line said that cannot be read is unknown, and so is how many there were."""
    rules = ShardRules()
    rules.take(HEADER)

    rules.miss()

    assert rules.take({"thread": 1, "seq": 0, "step": 0, **_end(1)}) == []
    assert rules.take({"kind": "footer", "records": {"header": 1, "step": 1}}) == []


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
