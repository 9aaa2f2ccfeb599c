"""Each kind of value becomes what the schema allows, and tells what it is."""

import collections
import enum
import functools
import gc
import itertools
import math
import os
import subprocess
import sys
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincheck_instrument.encode import Encoder
from traincheck_trace_schema.codec import dumps


class Named(NamedTuple):
    a: int
    b: int


class Mode(enum.Enum):
    FAST = 1
    BOTH = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Option(enum.Flag):
    A = 1
    B = 2


def function():
    pass


class Lr(float):
    def __float__(self):
        raise RuntimeError

    __repr__ = __str__ = __eq__ = __lt__ = __sub__ = __float__
    __hash__ = None


class Count(int):
    def __int__(self):
        raise RuntimeError

    __index__ = __repr__ = __eq__ = __lt__ = __le__ = __ge__ = bit_length = __int__
    __hash__ = None


class Text(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError

    __len__ = __getitem__ = encode = isascii = __repr__ = __eq__ = __str__
    __hash__ = None


def hostile(base):
    """Make a class below `base` whose methods raise."""

    def fail(*_, **__):
        raise RuntimeError

    names = (
        *("__iter__", "__len__", "__getitem__", "__contains__", "__eq__", "__hash__", "__repr__"),
        *("__getattr__", "__getattribute__", "__str__", "__bool__", "items", "keys", "__reduce__"),
    )
    return type("Hostile", (base,), dict.fromkeys(names, fail))


class Meta(type):
    """A metaclass that lies and raises."""

    def __hash__(cls):
        raise RuntimeError

    def __eq__(cls, _):
        raise RuntimeError

    def __instancecheck__(cls, _):
        return True

    def __getattribute__(cls, name):
        raise RuntimeError(name)


class Lied(metaclass=Meta):
    @property
    def __class__(self):
        return torch.Tensor

    @property
    def __dict__(self):
        raise RuntimeError


@pytest.fixture
def told(encode):
    """Return a function that returns the attributes of an object."""
    return lambda value: encode(value)["object"]["attributes"]


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.complex_numbers(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.integers() | st.text() | st.none(), inner)
        | st.sets(st.integers() | st.text())
    ),
    max_leaves=20,
)


@given(JSON_LIKE)
def test_whatever_is_encoded_is_valid(encode, value):
    """No NaN token, no number beyond 64 bit and no lone surrogate reaches the trace."""
    encode(value)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (math.nan, {"float": "nan"}),
        (math.inf, {"float": "inf"}),
        (-math.inf, {"float": "-inf"}),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, {"int": str(2**63)}),
        (-(2**63) - 1, {"int": str(-(2**63) - 1)}),
        ((1, "a"), {"tuple": [1, "a"]}),
        ({1: True}, {"dict": [[1, True]]}),
        ({(1, 2): None, None: 0.5}, {"dict": [[{"tuple": [1, 2]}, None], [None, 0.5]]}),
        (torch.Size([2, 3]), {"tuple": [2, 3]}),
        (torch.bfloat16, {"dtype": "bfloat16"}),
        (torch.device("cpu"), {"device": "cpu"}),
        (torch.device("cuda", 1), {"device": "cuda:1"}),
        (b"abc", {"bytes": {"length": 3}}),
        (bytearray(4), {"bytes": {"length": 4}}),
        (memoryview(bytes(12)).cast("i"), {"bytes": {"length": 12}}),
        ("x" * 200, "x" * 200),
        ("x" * 300, {"text": {"start": "x" * 200, "length": 300}}),
        ("é" * 300, {"text": {"start": "é" * 200, "length": 300}}),
        ("\ud800", "?"),
        (Lr(0.5), 0.5),
        (Lr("inf"), {"float": "inf"}),
        (Count(7), 7),
        (Count(2**70), {"int": str(2**70)}),
        (Text("abc"), "abc"),
        (np.float64(0.5), 0.5),
        (np.float32("nan"), {"float": "nan"}),
        (np.int64(-3), -3),
        (np.uint64(2**64 - 1), {"int": str(2**64 - 1)}),
        (np.bool_(True), True),  # noqa: FBT003  a value
        (np.str_("abc"), "abc"),
        (np.bytes_(b"ab"), {"bytes": {"length": 2}}),
    ],
    ids=map(str, itertools.count()),
)
def test_values_that_json_lacks_say_what_they_are(encode, value, encoded):
    """Primitives stay, also those of subclasses, whose methods are not called; others are keyed."""
    assert encode(value) == encoded
    assert type(encode(value)) is type(encoded)


def test_a_huge_integer_is_told_by_its_length(encode, told):
    """Its digits would take hours, and are more than Python writes."""
    assert told(-(1 << 33_000_000)) == {"bits": 33_000_001, "negative": True}
    assert encode(1 << 639) == {"int": str(1 << 639)}
    assert told(1 << 640) == {"bits": 641, "negative": False}


def test_a_complex_number_is_told_by_its_parts(told):
    """Also of numpy, and with parts that are not finite."""
    assert told(complex(1.5, -math.inf)) == {"real": 1.5, "imag": {"float": "-inf"}}
    assert told(np.complex64(2j)) == {"real": 0.0, "imag": 2.0}


def test_a_released_view_is_known_by_its_type(encode):
    """Asking it for its length raises."""
    view = memoryview(b"abc")
    view.release()

    assert encode(view) == {"object": {"type": "builtins.memoryview"}}


def test_an_enum_tells_its_name_and_a_primitive_value(told):
    """An IntEnum is told as what it is, not as a number; a combined flag has a name too."""
    assert told(Mode.FAST) == {"name": "FAST", "value": 1}
    assert told(Mode.BOTH) == {"name": "BOTH"}
    assert told(Level.HIGH) == {"name": "HIGH", "value": 3}
    assert told(Option.A | Option.B)["value"] == 3


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (function, f"{__name__}.function"),
        (lambda: 0, "<lambda>"),
        (len, "builtins.len"),
        ([].append, "list.append"),
        (str.upper, "str.upper"),
        (torch.nn.ReLU().forward, "torch.nn.modules.activation.ReLU.forward"),
        (torch.nn.Linear, "torch.nn.Linear"),
        (torch.nn.modules.batchnorm._BatchNorm, "torch.nn.modules.batchnorm._BatchNorm"),
        (torch.Generator, "torch.Generator"),
        (collections.OrderedDict, "collections.OrderedDict"),
        (Lied, "Lied"),
        (math, "math"),
        (torch.optim, "torch.optim"),
        (torch.channels_last, "torch.channels_last"),
        (torch.sparse_coo, "torch.sparse_coo"),
        (torch.per_tensor_affine, "torch.per_tensor_affine"),
    ],
    ids=map(str, itertools.count()),
)
def test_what_has_a_name_tells_it(told, value, name):
    """Functions, methods, classes and modules by their qualified names."""
    assert told(value)["name"].endswith(name)


def test_a_method_bound_around_an_object_does_not_ask_it(told):
    """What is bound may be any callable, also one whose attributes raise."""
    callable_ = hostile(object)()
    type(callable_).__call__ = lambda *_: None

    assert told(type(function.__get__(1))(callable_, 1))["name"].endswith("Hostile")


def test_a_generator_of_random_numbers_tells_its_seed_and_keeps_its_state(told):
    """Workers that share a seed are a known error; reading it draws nothing."""
    generator = torch.Generator().manual_seed(2**63 + 5)
    state = generator.get_state()

    assert told(generator) == {"device": {"device": "cpu"}, "seed": {"int": str(2**63 + 5)}}
    assert torch.equal(generator.get_state(), state)


def test_an_array_tells_shape_and_dtype(told):
    """Of numpy, also with a structured dtype, whose text is cut."""
    structured = np.zeros(2, dtype=[(f"field{index}", "f4") for index in range(99)])

    assert told(np.zeros((2, 3), np.int16)) == {"shape": {"tuple": [2, 3]}, "dtype": "int16"}
    assert len(told(structured)["dtype"]) == 200


def test_a_module_tells_if_it_trains(told):
    """Also one whose class hides its attributes."""
    module = torch.nn.ReLU().eval()
    module.__class__ = type("Hidden", (torch.nn.ReLU,), {"__dict__": property(lambda _: 1 / 0)})

    assert told(torch.nn.ReLU()) == {"training": True}
    assert told(module) == {"training": False}


@pytest.mark.parametrize("base", [object, list, dict, set, frozenset, tuple], ids=repr)
def test_hostile_objects_and_containers_are_safe(base):
    """No method of theirs is called: not for their type, their items or their length."""
    value = hostile(base)()
    with torch._C.DisableTorchFunction():
        encoded = Encoder()([value, {1: value}])

    assert (base is object) == ("Hostile" in str(encoded))


def test_an_object_that_lies_about_its_class_is_known_by_its_type(encode):
    """Neither `__class__` nor a metaclass is asked."""
    assert encode(Lied())["object"]["type"].endswith("Lied")
    assert "Lied" in encode([[[[[Lied()]]]]][0][0][0][0][0])["object"]["type"]


def test_a_type_is_not_kept_alive():
    """A class that the program makes and drops is gone, and its successor is not taken for it."""
    encoder = Encoder()
    for index in range(50):
        kind = type(f"Kind{index}", (), {})
        assert encoder(kind())["object"]["type"].endswith(f".Kind{index}")

    del kind
    gc.collect()  # a class is part of cycles

    assert not encoder._encoders.known


def test_cycles_and_long_and_deep_containers_are_cut_and_say_so(encode):
    """A container that holds itself ends at a depth; a long one after a number of items."""
    cycle: list[object] = []
    cycle.append(cycle)
    loop: dict[str, object] = {}
    loop["self"] = loop

    assert encode(cycle) == [[[[{"cut": "builtins.list"}]]]]
    assert "cut" in str(encode(loop))
    assert encode(list(range(100)))[-1] == {"cut": "68 more"}
    assert encode(dict.fromkeys(range(40)))["dict"][-1] == [{"cut": "8 more"}, None]
    assert encode([[[[collections.OrderedDict()]]]]) == [[[[{"cut": "collections.OrderedDict"}]]]]
    assert len(encode(list(range(32)))) == 32


def test_one_value_has_a_bounded_number_of_items_however_they_are_nested(encode):
    """32 lists of 32 lists of 32 lists are not written out."""
    nested: object = 0
    for _ in range(4):
        nested = [nested] * 32

    text = dumps(encode(nested))

    assert text.count("0,") < 256
    assert len(text) < 8000
    assert "more" in text


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ({3, 1, 20}, [1, 3, 20]),
        (frozenset("cab"), ["a", "b", "c"]),
        (set(), []),
        (set(range(1000, 0, -1)), [*range(1, 33), {"cut": "968 more"}]),
        (set(range(5000)), [{"cut": "5000 more"}]),
        ({f"{index}": None for index in range(40)}.keys() | {(1,)}, [{"cut": "41 more"}]),
        ({None, 2, "b", (1,)}, [{"tuple": [1]}, "b", 2, None]),
    ],
    ids=map(str, itertools.count()),
)
def test_sets_are_in_an_order_that_does_not_depend_on_the_process(encode, value, items):
    """Sorted where that is cheap; otherwise their number is told."""
    encoded = encode(value)["set"]

    assert sorted(map(str, encoded)) == sorted(map(str, items))
    if all(type(item) is type(items[0]) for item in items):
        assert encoded == items


def test_a_set_is_written_alike_under_every_hash_seed():
    """Ranks have different seeds, and would seem to be called with different arguments."""
    program = (
        "from traincheck_instrument.encode import Encoder;"
        "print(Encoder()([set('abcdefgh'), {None, 'x', 'y', 'z', (1,), b'b'}]))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(printed) == 1


def test_what_is_consumed_by_reading_is_not_read(encode):
    """A generator among the arguments still has all its items; a named tuple is a tuple."""
    numbers = iter([1, 2, 3])

    encode(numbers)

    assert list(numbers) == [1, 2, 3]
    assert encode(Named(1, 2)) == {"tuple": [1, 2]}
    assert encode(functools.partial(function))["object"]["type"] == "functools.partial"


def test_an_ordered_dictionary_is_told_in_its_own_order(encode):
    """Not in that in which its keys came."""
    value = OrderedDict(a=1, b=2, c=3)
    value.move_to_end("a")
    value.move_to_end("c", last=False)

    assert encode(value) == {"dict": [["c", 3], ["b", 2], ["a", 1]]}


def test_the_keys_of_an_ordered_dictionary_are_not_hashed(encode):
    """That would run code of the program."""

    class Key:
        calls = 0

        def __hash__(self):
            Key.calls += 1
            return 1

    value = OrderedDict({Key(): 1})
    before = Key.calls
    encode(value)

    assert Key.calls == before
