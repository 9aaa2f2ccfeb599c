import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from traincheck_instrument.content.digest import fingerprint, is_readable, largest

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")

# All that torch has but for quantized ones, which are not digested.
DTYPES = sorted(
    {
        one
        for name, one in vars(torch).items()
        if isinstance(one, torch.dtype) and not name.startswith(("qint", "quint"))
    },
    key=str,
)
COMPUTABLE = [
    *(torch.bool, torch.uint8, torch.int16, torch.int64, torch.complex64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.float8_e4m3fn, torch.float8_e5m2),
]
ROWS, COLUMNS = 4, 6
LAYOUTS = {
    "transposed": lambda tensor: tensor.t(),
    "strided": lambda tensor: tensor[::2, ::3],
    "offset": lambda tensor: tensor[1:, 2:],
    "expanded": lambda tensor: tensor[:1].expand(3, COLUMNS),
    "scalar": lambda tensor: tensor[1, 1],
    "empty": lambda tensor: tensor[:0],
}


def byte_at(index):
    return (index + index // 256) % 256


def make(dtype, content):
    """Make a tensor of any dtype from its bytes."""
    raw = torch.tensor(list(content), dtype=torch.uint8)
    return raw.view(dtype).reshape(ROWS, COLUMNS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(deadline=None)
@given(data=st.data())
def test_a_change_of_any_element_changes_the_digest(dtype, data):
    """No element is left out, in whatever bit it differs, and equal content is equal."""
    count = ROWS * COLUMNS * dtype.itemsize
    content = bytearray(data.draw(st.binary(min_size=count, max_size=count)))
    tensor, copy = make(dtype, content), make(dtype, content)
    content[data.draw(st.integers(0, count - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert fingerprint(tensor) == fingerprint(copy)
    assert fingerprint(tensor) != fingerprint(make(dtype, content))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_memory_layout_does_not_matter(dtype, layout):
    """A view has the digest of a tensor that was made with its content."""
    size = dtype.itemsize
    view = LAYOUTS[layout](make(dtype, map(byte_at, range(ROWS * COLUMNS * size))))
    numbers = LAYOUTS[layout](torch.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS))
    content = [
        byte_at(byte + number * size)
        for number in numbers.flatten().tolist()
        for byte in range(size)
    ]
    same = torch.tensor(content, dtype=torch.uint8).view(dtype).reshape(view.shape)

    assert fingerprint(view) == fingerprint(same)
    assert view.numel() == 0 or fingerprint(view) != fingerprint(same.flatten())


@pytest.mark.parametrize("dtype", COMPUTABLE, ids=str)
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
    assert largest(torch.tensor([3e38 + 3e38j, -1j]).conj()) == pytest.approx(3e38)
    assert math.isinf(largest(torch.tensor([complex(0, math.inf)])))
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


def test_a_tensor_whose_storage_was_freed_in_part_is_not_readable():
    """The last element has to be there; of a view, what the view reaches."""
    base = torch.arange(12.0).reshape(3, 4)
    column, row, reversed_part = base[:, 1], base[0], base[1:, 2:]
    base.untyped_storage().resize_(4 * 9)

    assert not is_readable(base)
    assert is_readable(row)
    assert not is_readable(column)
    base.untyped_storage().resize_(4 * 10)
    assert is_readable(column)
    assert not is_readable(reversed_part)
    assert is_readable(base[3:])


def test_reading_a_tensor_leaves_its_storage_as_it_was():
    """A storage can still be resized afterwards, as FSDP does; so can that of a view."""
    tensor = torch.ones(4)

    fingerprint(tensor)
    fingerprint(tensor[1:])

    assert tensor.untyped_storage().resizable()
    tensor.untyped_storage().resize_(0)
