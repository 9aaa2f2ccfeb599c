"""Evidence, beside that of the reference."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from traincheck_check.reporting.html.evidence import Comparison, compared
from traincheck_check.reporting.html.record_fields import fields_of, title_of
from traincheck_trace_schema.occasion import Evidence, Place, Reference

STEP = "torch.optim.Adam.step"


def told(kind: str, rank: int = 0, **fields: Any) -> Evidence:
    return Evidence(rank=rank, shard="trace.json", record={"kind": kind, **fields})


def beside(*evidence: Evidence, reference: tuple[Evidence, ...] | None = None) -> Comparison:
    at = Place(step=2, stage="training", rank=1)
    held = None if reference is None else Reference(run="good", at=at, evidence=reference)
    return compared(evidence, held, max_fields=9)


def rows(comparison: Comparison) -> list[tuple[Any, ...]]:
    return [attrs.astuple(row) for pair in comparison.pairs for row in pair.rows]


def test_what_differs_from_the_reference_is_marked() -> None:
    """Fields stand side by side; those that are equal are not marked."""
    here = told("var", names=["w"], attributes={"requires_grad": False, "grad": None})
    there = told("var", names=["w"], attributes={"requires_grad": True, "grad": None})

    comparison = beside(here, reference=(there,))

    assert rows(comparison) == [
        ("names", "w", "w", False),
        ("attributes.requires_grad", "false", "true", True),
        ("attributes.grad", "null", "null", False),
    ]
    assert comparison.reference == "run good, step 2 (training), rank 1"
    assert not comparison.is_alike


def test_where_a_record_stands_is_no_difference() -> None:
    """Numbers of records, calls and steps differ between any two runs, as digests of tensors do."""
    value = {"shape": [2], "dtype": "float32", "device": "cpu", "zero": True}
    here = told(
        "var", t_ns=1, thread=2, seq=4, step=1, id=2, src=3, attributes={"grad": {"tensor": value}}
    )
    other = {"tensor": {**value, "digest": "xxh3:ab"}}
    there = told("var", seq=9, step=7, id=5, src=6, attributes={"grad": other})

    comparison = beside(here, reference=(there,))

    assert rows(comparison) == [
        (
            "attributes.grad",
            "float32 [2], all zero",
            "float32 [2], all zero, digest xxh3:ab",
            False,
        )
    ]
    assert comparison.is_alike
    assert comparison.pairs[0].here.at == "step 1, rank 0, record 4"


def tensor(digest: str, rank: int = 0) -> Evidence:
    value = {"tensor": {"shape": [2], "dtype": "float32", "digest": digest}}
    return told("var", rank, attributes={"data": value})


@pytest.mark.parametrize(
    ("here", "there", "differs"),
    [
        ("aa", "bb", [False, False]),
        ("ab", "cc", [False, True]),
        ("aa", "bc", [False, True]),
        ("ab", "cd", [False, False]),
        ("ab", "bc", [False, False]),
    ],
)
def test_of_digests_is_compared_which_of_them_are_equal(here, there, differs) -> None:
    """Ranks that differ here and agree in the reference; a tensor that only changes there."""
    records = [tensor(f"xxh3:{each}", rank) for rank, each in enumerate(here)]
    reference = tuple(tensor(f"xxh3:{each}", rank) for rank, each in enumerate(there))

    comparison = beside(*records, reference=reference)

    assert [row.differs for pair in comparison.pairs for row in pair.rows] == differs


def test_digests_of_records_without_a_match_do_not_count() -> None:
    """They would shift those of the others."""
    first = told("call_begin", **tensor("xxh3:c").record["attributes"])

    comparison = beside(first, tensor("xxh3:a"), reference=(tensor("xxh3:b"),))

    assert not any(row.differs for pair in comparison.pairs for row in pair.rows)


def test_a_field_that_one_of_them_lacks_differs() -> None:
    """What is not told here and told there is a difference."""
    here = told("call_begin", function=STEP)
    there = told("call_begin", function=STEP, args={"closure": None})

    assert rows(beside(here, reference=(there,))) == [
        ("function", STEP, STEP, False),
        ("args.closure", None, "null", True),
    ]


def test_a_record_that_is_missing_is_told() -> None:
    """The reference has a change between two looks, this run has none: that is the finding."""
    looks = told("call_begin", function=STEP), told("observe", phase="end", function=STEP)
    change = told("var", event="changed", names=["w"])

    comparison = beside(*looks, reference=(looks[0], change, looks[1]))

    assert [(each.title, each.here is None) for each in comparison.pairs] == [
        ("Call begins", False),
        ("Variable changed", True),
        ("Variables looked at", False),
    ]
    assert not comparison.is_alike


def test_records_of_further_violations_are_the_rest() -> None:
    """The reference is one occasion; what comes after its last record has no match."""
    looks = told("call_begin", function=STEP), told("observe", phase="end", function=STEP)

    comparison = beside(*looks, *looks, *looks, reference=looks)

    assert (len(comparison.pairs), len(comparison.rest)) == (2, 4)
    assert comparison.is_alike


@pytest.mark.parametrize("reference", [None, ()])
def test_without_a_reference_the_first_violation_is_shown(reference) -> None:
    """What repeats is the rest; records of other ranks or variables do not repeat."""
    first = told("var", names=["w"]), told("var", rank=1, names=["w"]), told("var", names=["v"])

    comparison = beside(*first, *first, reference=reference)

    assert (len(comparison.pairs), len(comparison.rest)) == (3, 3)
    assert comparison.reference == ""
    assert not any(row.differs for pair in comparison.pairs for row in pair.rows)


def test_a_record_with_many_fields_is_cut() -> None:
    """It says how many are left out."""
    (pair,) = beside(told("var", **{f"f{number}": number for number in range(30)})).pairs

    assert (len(pair.rows), pair.more) == (9, 21)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"object": {"type": "torch.optim.Adam", "name": "optimizer0"}},
            "optimizer0 (torch.optim.Adam)",
        ),
        ({"object": {"type": "Foo", "attributes": {"lr": 1}}}, 'Foo {"lr":1}'),
        ({"float": "nan"}, "nan"),
        ({"tuple": [1, {"int": "18446744073709551616"}]}, "(1, 18446744073709551616)"),
        ({"tensor": {"shape": [], "dtype": "int64", "finite": False}}, "int64 [], not finite"),
        (["data", "grad"], "data, grad"),
        (("data", "grad"), "data, grad"),
        ([1, "a"], '[1,"a"]'),
        ("x" * 300, f"{'x' * 240}… (60 more characters)"),
        ({"tensor": "odd"}, None),
        ({"float": 3}, None),
    ],
)
def test_values_are_told_in_short(value, text) -> None:
    """As the trace encodes them; what only looks like an encoding is told field by field."""
    fields = fields_of({"kind": "call_begin", "self": value})

    if text is None:
        ((key, payload),) = value.items()
        assert fields[f"self.{key}"].text == str(payload)
    else:
        assert fields["self"].text == text


def test_deep_fields_are_told_as_json() -> None:
    """A record of a plugin may nest as deep as it likes."""
    deep: dict[str, Any] = {"e": 1}
    for name in "dcba":
        deep = {name: deep}

    assert {path: each.text for path, each in fields_of(deep).items()} == {"a.b.c.d": '{"e":1}'}


def test_a_record_of_an_unknown_kind_keeps_its_name() -> None:
    """Of one that has no kind, nothing is made up."""
    assert title_of({"kind": "novelty"}) == "novelty"
    assert title_of({}) == "record"
    assert title_of({"kind": "var", "event": "gone"}) == "Variable gone"
