"""How content is read: in place where it lies, or in one transfer, always to the same digest."""

import weakref

import attrs
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_instrument.content import transfer
from traincheck_instrument.content.contents import Contents, Slot
from traincheck_instrument.content.digest import fingerprint, is_readable, zero_and_finite
from traincheck_instrument.content.transfer import fetch_fingerprints, fetch_zero_and_finite
from traincheck_instrument.encode.tensors import TensorDescriber

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")


def replace(tensor, data):
    tensor.data = data


CHANGES = {
    "nothing": lambda tensor: tensor,
    "numbers": lambda tensor: tensor.data.add_(1),
    "transposed": lambda tensor: replace(tensor, tensor.data.t()),
    "reshaped": lambda tensor: replace(tensor, tensor.data.reshape(-1)[:16].view(2, 8)),
    "square": lambda tensor: replace(tensor, tensor.data.reshape(-1)[:16].view(4, 4)),
    "other dtype": lambda tensor: replace(tensor, tensor.data.resolve_neg().view(torch.int32)),
    "first dtype": lambda tensor: replace(tensor, tensor.data.resolve_neg().view(torch.float32)),
    "moved": lambda tensor: replace(tensor, tensor.data.clone()),
    "shifted": lambda tensor: replace(tensor, torch.arange(20.0)[2:18].view(4, 4)),
    "negative": lambda tensor: replace(tensor, torch._neg_view(tensor.data.float())),
    "cut": lambda tensor: tensor.untyped_storage().resize_(8),
    "freed": lambda tensor: tensor.untyped_storage().resize_(0),
    "grown": lambda tensor: tensor.untyped_storage().resize_(400),
}


@settings(max_examples=150, deadline=None)
@given(names=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=8))
def test_what_is_remembered_of_a_tensor_never_decides(names):
    """Wherever it has gone since the last look, the mark is that of its content now."""
    tensor, slot = torch.arange(16.0).reshape(4, 4), Slot("data")
    contents = Contents(TensorDescriber())
    for name in names:
        if not is_readable(tensor) and name not in ("cut", "freed", "grown", "nothing"):
            continue
        CHANGES[name](tensor)

        mark = contents.mark(tensor, slot)

        if is_readable(tensor):
            assert mark == fingerprint(tensor)
        else:
            assert isinstance(mark, str)


def test_memory_that_shrank_in_place_is_not_read():
    """An allocator may give the same address again; the storage says how far it reaches."""
    tensor, slot = torch.arange(16.0), Slot("data")
    contents = Contents(TensorDescriber())
    contents.mark(tensor, slot)
    tensor.untyped_storage().resize_(63)
    slot.place = attrs.evolve(slot.place, pointer=tensor.data_ptr())

    assert isinstance(contents.mark(tensor, slot), str)


def many():
    """Return tensors of many kinds, more bytes than a small chunk has."""
    numbers = torch.arange(-8.0, 8.0).reshape(4, 4)
    tensors = [
        numbers.to(dtype)
        for dtype in (
            *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
            *(torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn),
        )
    ]
    shapes = [numbers.t(), numbers[1:, ::2], numbers[0, 0], numbers[:0], numbers.expand(3, 4, 4)]
    return [*tensors, *shapes, torch.tensor([1 + 2j]).conj(), torch._neg_view(numbers)]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_what_is_fetched_at_once_has_the_same_digests(chunk):
    """However it is cut into transfers, and whatever order it has in memory."""
    tensors = many()

    assert fetch_fingerprints(tensors, chunk=chunk) == [fingerprint(one) for one in tensors]


def test_a_transfer_is_no_larger_than_a_chunk(monkeypatch):
    """It bounds the memory that is taken of a device; large tensors are fetched in pieces."""
    sizes = []
    fetch = transfer._Chunk.digest
    monkeypatch.setattr(
        transfer._Chunk, "digest", lambda chunk: sizes.append(chunk.size) or fetch(chunk)
    )

    fetch_fingerprints([torch.ones(10), torch.ones(5), torch.ones(3)], chunk=16)

    assert max(sizes) == 16
    assert sum(sizes) == 4 * 18


def test_zeros_and_what_is_finite_are_the_same_for_all_at_once():
    """Of one tensor alone, and of all of a device together."""
    special = [torch.tensor(numbers) for numbers in ([0.0, -0.0], [1e-45], [torch.nan, 1.0])]
    halves = [torch.full((4096,), 60000.0, dtype=torch.float16), torch.tensor([1.0, -1.0])]
    tensors = [*many(), *special, *halves, torch.tensor([1.0, -torch.inf, torch.inf])]

    alone = [zero_and_finite(one) for one in tensors]

    assert fetch_zero_and_finite(tensors) == alone
    assert alone[-6:] == [
        (True, True),
        (False, True),
        (False, False),
        (False, True),
        (False, True),
        (False, False),
    ]


def test_no_place_keeps_a_tensor_or_its_memory():
    """What is remembered is an address."""
    slot, contents = Slot("data"), Contents(TensorDescriber())
    tensor = torch.ones(1000)
    contents.mark(tensor, slot)
    tensor_there, storage_there = weakref.ref(tensor), weakref.ref(tensor.untyped_storage())

    del tensor

    assert slot.place is not None
    assert tensor_there() is None
    assert storage_there() is None
