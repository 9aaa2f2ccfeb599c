from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from traincheck_trace_schema.codec import structure_value
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.values import (
    BytesValue,
    CutText,
    CutValue,
    DeviceValue,
    DictValue,
    DtypeValue,
    ObjectValue,
    SetValue,
    TensorValue,
)

if TYPE_CHECKING:
    from traincheck_trace_schema.values import Json, TypedValue


@pytest.mark.parametrize(
    ("raw", "typed"),
    [
        (0.5, 0.5),
        (None, None),
        ([1, {"dtype": "int8"}], [1, DtypeValue("int8")]),
        (
            {"tensor": {"shape": [2], "dtype": "int8", "device": "cpu", "data": [1, 2]}},
            TensorValue(shape=(2,), dtype="int8", device="cpu", data=(1, 2)),
        ),
        (
            {"object": {"type": "t", "attributes": {"lr": {"int": "9"}}}},
            ObjectValue(type="t", attributes={"lr": {"int": "9"}}),
        ),
        ({"device": "cuda:0"}, DeviceValue("cuda:0")),
        ({"float": "-inf"}, -math.inf),
        ({"int": "18446744073709551616"}, 2**64),
        ({"tuple": [1, {"tuple": []}]}, (1, ())),
        ({"set": ["a"]}, SetValue(("a",))),
        ({"dict": [[1, {"cut": "t"}]]}, DictValue(((1, CutValue("t")),))),
        ({"text": {"start": "a", "length": 9}}, CutText(start="a", length=9)),
        ({"bytes": {"length": 3}}, BytesValue(length=3)),
    ],
)
def test_each_encoding_has_its_class(raw: Json, typed: TypedValue) -> None:
    """What stands in a trace as a one-key object is read as what it says it is."""
    assert structure_value(raw) == typed


@pytest.mark.parametrize("raw", [{}, {"lr": 1}, {"tensor": {}}, {"dtype": 7}, {"dict": [[1]]}])
def test_what_is_no_value_is_refused(raw: Json) -> None:
    """An object that slipped into a trace as it is has no meaning there."""
    with pytest.raises(TraceError):
        structure_value(raw)


def test_an_integer_of_many_digits_is_refused() -> None:
    """Python takes quadratic time for it, and has a limit."""
    with pytest.raises(TraceError, match=r"fewer digits than 5000"):
        structure_value({"int": "1" * 5000})
