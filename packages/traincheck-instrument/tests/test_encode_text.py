"""The text of a value is that of what the encoder makes of it, also where it was remembered."""

import gc
import weakref

import pytest
import torch
from torch import nn

from traincheck_instrument.encode import Encoder, TextEncoder
from traincheck_trace_schema.codec import dumps

pytestmark = pytest.mark.torch


@pytest.fixture
def encode():
    return Encoder()


@pytest.fixture
def write(encode):
    return TextEncoder(encode)


def test_tensors_that_differ_in_kind_alone_are_told_apart(encode, write):
    """A sparse one, and one inside of `vmap`, after a dense one of the same shape and dtype."""
    dense = torch.eye(3)
    inside = []

    def tell(row):
        inside.append((write(row), dumps(encode(row))))
        return row

    torch.vmap(tell)(torch.eye(3))
    values = [dense, dense.to_sparse(), dense, dense[0], dense.requires_grad_(), dense.bfloat16()]

    assert [write(value) for value in values] == [dumps(encode(value)) for value in values]
    assert inside[0][0] == inside[0][1]
    assert write(dense[0]) != inside[0][0]


def test_a_module_is_told_as_it_is_now(encode, write):
    """Training or not, and with the name that it was given since."""
    module = nn.ReLU()
    told = [write(module), write(module.eval())]
    encode.names[id(module)] = "scale"
    told.append(write(module))

    assert [text.count("true") for text in told] == [1, 0, 0]
    assert ["scale" in text for text in told] == [False, False, True]


@pytest.mark.parametrize("kind", [list, tuple])
def test_items_are_told_flat_or_nested(encode, write, kind):
    """Lists of parameters and numbers, long ones, and such as hold others."""
    parameters = kind(nn.Linear(2, 2).parameters())
    values = [
        kind(()),
        parameters,
        kind((1, 2.5, "a", None, True, float("nan"), 2**70)),
        kind(range(32)),
        kind(range(33)),
        kind((1, [2, (3,)])),
        kind((1, [2], (3, "b"), [], ())),
        kind([(torch.ones(2), 1)] * 128),
        kind([[0] * 7] * 33),
        kind([[0] * 8] * 33),
        kind((nn.ReLU(),)),
    ]

    assert [write(value) for value in values] == [dumps(encode(value)) for value in values]


def test_shapes_without_number_are_not_remembered_without_end(write, monkeypatch):
    """A program with sequences of any length has ever new ones."""
    monkeypatch.setattr("traincheck_instrument.encode.text._MAX_KNOWN", 8)
    for length in range(100):
        write(torch.empty(length))

    assert len(write._tensors) <= 8


def test_nothing_that_was_written_is_kept_alive(write):
    """Neither values nor their types."""

    class Own(nn.Module):
        pass

    kept = [torch.ones(2), Own(), Own]
    for value in kept[:2]:
        write(value)
    references = [weakref.ref(value) for value in kept]
    kept.clear()
    del Own, value
    gc.collect()

    assert [reference() for reference in references] == [None] * 3
