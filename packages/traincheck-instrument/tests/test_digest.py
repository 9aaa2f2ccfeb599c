import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from traincheck_instrument.trackers.digest import fingerprint, is_readable, largest

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.float8_e4m3fn,
]


@given(st.lists(st.floats(width=32), min_size=2, max_size=12), st.data())
def test_a_change_of_any_element_changes_the_digest(values, data):
    """No element is left out, wherever it lies, and NaN differs from infinity."""
    tensor = torch.tensor(values)
    index = data.draw(st.integers(0, len(values) - 1))
    other = tensor.clone()
    other.view(torch.int32)[index] ^= 1

    assert fingerprint(tensor) != fingerprint(other)
    assert fingerprint(tensor) == fingerprint(tensor.clone())


@given(st.integers(1, 5), st.integers(1, 5))
def test_the_memory_layout_does_not_matter(rows, columns):
    """A transposed view has the digest of its contiguous copy."""
    tensor = torch.arange(rows * columns, dtype=torch.float32).reshape(columns, rows).t()

    assert fingerprint(tensor) == fingerprint(tensor.contiguous())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 5), (3,), (2, 3)], ids=str)
def test_every_dtype_and_shape_has_a_digest(dtype, shape):
    """Empty, zero-dimensional and exotic tensors are digested, and zeros are known as zeros."""
    zeros, ones = torch.zeros(shape).to(dtype), torch.ones(shape).to(dtype)

    assert largest(zeros) == 0.0
    assert (fingerprint(ones) != fingerprint(zeros)) == (zeros.numel() > 0)
    assert largest(ones) == float(zeros.numel() > 0)


def test_the_largest_magnitude_tells_zero_and_finite_apart():
    """Negative zero is zero; NaN and infinity are not finite; half precision does not overflow."""
    assert largest(torch.tensor([0.0, -0.0])) == 0.0
    assert math.isnan(largest(torch.tensor([1.0, math.nan])))
    assert math.isinf(largest(torch.tensor([1.0, -math.inf])))
    assert largest(torch.full((4096,), 60000.0, dtype=torch.float16)) == 60000.0


def test_shape_and_dtype_are_part_of_the_digest():
    """The same bytes as another shape or dtype are another value."""
    zeros = torch.zeros(3, 4)

    assert len({fingerprint(one) for one in (zeros, zeros.t(), zeros.int(), zeros[:, :2])}) == 4


def test_conjugate_and_negative_views_are_read_as_what_they_stand_for():
    """A lazily conjugated or negated tensor has the digest of its resolved copy."""
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    conjugate = tensor.conj()
    negative = torch._neg_view(torch.tensor([1.0, -2.0]))

    assert fingerprint(conjugate) == fingerprint(conjugate.resolve_conj().clone())
    assert fingerprint(conjugate) != fingerprint(tensor)
    assert fingerprint(negative) == fingerprint(torch.tensor([-1.0, 2.0]))


def test_a_tensor_without_content_is_not_readable():
    """Freed storage, meta and sparse tensors are not read: the first would end the process."""
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)

    assert not is_readable(freed)
    assert not is_readable(torch.ones(4, device="meta"))
    assert not is_readable(torch.ones(2, 2).to_sparse())
    with FakeTensorMode():
        assert not is_readable(torch.ones(2))
    assert is_readable(torch.ones(4))


def test_reading_a_tensor_leaves_its_storage_as_it_was():
    """A storage can still be resized afterwards, as FSDP does; so can that of a view."""
    tensor = torch.ones(4)

    fingerprint(tensor)
    fingerprint(tensor[1:])

    assert tensor.untyped_storage().resizable()
    tensor.untyped_storage().resize_(0)
