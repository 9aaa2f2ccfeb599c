import enum
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincheck_instrument.encode import Encoder
from traincheck_trace_schema.codec import dumps, loads


class Named(NamedTuple):
    a: int
    b: int


class Hostile:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


class Mode(enum.Enum):
    FAST = 1


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.integers(), inner),
    max_leaves=20,
)


@given(JSON_LIKE)
def test_whatever_is_encoded_can_be_written_and_read_back(value):
    """No NaN token, no number beyond 64 bit and no lone surrogate reaches the trace."""
    encoded = Encoder()(value)

    assert loads(dumps(encoded).encode()) == encoded


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (float("nan"), {"float": "nan"}),
        (float("-inf"), {"float": "-inf"}),
        (2**70, {"int": str(2**70)}),
        ((1, "a"), {"tuple": [1, "a"]}),
        ({1: True}, {"dict": [[1, True]]}),
        (torch.Size([2, 3]), {"tuple": [2, 3]}),
        (torch.bfloat16, {"dtype": "bfloat16"}),
        (torch.device("cpu"), {"device": "cpu"}),
        (b"abc", {"bytes": {"length": 3}}),
        ("x" * 300, {"text": {"start": "x" * 200, "length": 300}}),
    ],
)
def test_values_that_json_lacks_say_what_they_are(value, encoded):
    """Everything that is no JSON primitive is a one-key object."""
    assert Encoder()(value) == encoded


def test_an_object_is_described_without_running_its_code():
    """An object whose methods all raise is known by its type."""
    encoded = Encoder()(Hostile())

    assert encoded == {"object": {"type": f"{__name__}.Hostile"}}


def test_an_enum_and_a_module_tell_what_matters():
    """An enum member tells its name, a module if it trains."""
    encoder = Encoder()

    assert encoder(Mode.FAST)["object"]["attributes"] == {"name": "FAST"}
    assert encoder(torch.nn.ReLU().eval())["object"]["attributes"] == {"training": False}


def test_a_tensor_is_described_and_not_read():
    """Shape, dtype and device; a gradient requirement only where there is one."""
    tensor = torch.zeros(2, 3, dtype=torch.float16, requires_grad=True)

    assert Encoder()([tensor]) == [
        {
            "tensor": {
                "shape": [2, 3],
                "dtype": "float16",
                "device": "cpu",
                "requires_grad": True,
            }
        }
    ]


def test_cycles_and_long_containers_are_cut_and_say_so():
    """A container that holds itself ends at a depth; a long one after a number of items."""
    cycle: list[object] = []
    cycle.append(cycle)

    assert "cut" in str(Encoder()(cycle))
    assert Encoder()(list(range(100)))[-1] == {"cut": "68 more"}


def test_an_iterator_is_not_consumed():
    """A generator among the arguments still has all its items."""
    numbers = iter([1, 2, 3])
    named = Named(1, 2)

    Encoder()(numbers)

    assert list(numbers) == [1, 2, 3]
    assert Encoder()(named) == {"tuple": [1, 2]}
