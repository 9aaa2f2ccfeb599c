"""Where dense tensors lie in memory, and how they are read there."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import attrs
import torch
import xxhash
from torch._C import TensorBase

from traincheck_instrument.content.digest import seed_of
from traincheck_instrument.trackers.parameter import TrackedParameter

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL = 16 * 2**10  # bytes that are read as fast as three blocks are
_BLOCK = 2**10  # bytes

_is_contiguous = TensorBase.is_contiguous
_is_negative = TensorBase.is_neg  # it stands for the negative of what it has in memory
_data_ptr = TensorBase.data_ptr
_storage_of = TensorBase.untyped_storage
_digest: Callable[..., int] = xxhash.xxh3_64_intdigest


@attrs.frozen
class Form:
    """What tensors have in common that lie in memory alike; nothing of what they hold."""

    kind: type[torch.Tensor]
    dtype: torch.dtype
    shape: torch.Size
    size: int  # bytes
    seed: int
    memory: Any  # the type of their bytes
    text: str  # what describes them: JSON, without the braces

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has this form, if it lies in memory."""
        return (
            type(tensor) is self.kind
            and tensor.dtype is self.dtype
            and tensor.shape == self.shape
            and _is_contiguous(tensor)
            and not _is_negative(tensor)
        )


@attrs.frozen
class Place:
    """Where a dense tensor lies in memory, and all that its digest needs; no reference to it."""

    form: Form
    pointer: int
    storage_bytes: int
    content: Any  # reads the memory; it may be freed
    blocks: tuple[Any, ...]  # parts of it: of a large tensor its begin, its middle and its end

    def sample(self) -> int:
        """Return what tells the content from another by a few parts of it."""
        begin, middle, end = self.blocks
        return _digest(end, _digest(middle, _digest(begin)))


def is_ordinary(kind: type) -> bool:
    """Whether tensors of a type do what torch's do, and run no code of the program."""
    return kind is torch.Tensor or kind is TrackedParameter or kind is torch.nn.Parameter


def place_of(
    tensor: torch.Tensor, last: Place | None, describe: Callable[[torch.Tensor], str]
) -> Place | None:
    """Return where a readable tensor lies in memory; None if its bytes have another order there.

    Args:
        tensor: It may have the form that it had when it lay at the `last` place.
        last: That place.
        describe: Returns the text of its form.
    """
    if last is not None and last.form.is_of(tensor):
        form = last.form
    elif (new := _form_of(tensor, describe)) is not None:
        form = new
    else:
        return None
    address, size = _data_ptr(tensor), form.size
    return Place(
        form,
        address,
        _storage_of(tensor).nbytes(),
        form.memory.from_address(address) if size else b"",
        _blocks(address, size) if size > _SMALL else (),
    )


def _form_of(tensor: torch.Tensor, describe: Callable[[torch.Tensor], str]) -> Form | None:
    kind, dtype, shape = type(tensor), tensor.dtype, tensor.shape
    # No others: a class must not be kept alive, and may say of itself what it likes. A complex one
    # may stand for the conjugate of what it has in memory.
    if not is_ordinary(kind) or tensor.is_complex():
        return None
    size = tensor.numel() * tensor.element_size()
    seed, memory = seed_of(dtype, shape), ctypes.c_char * size
    form = Form(kind, dtype, shape, size, seed, memory, describe(tensor))
    return form if form.is_of(tensor) else None


def _blocks(address: int, size: int) -> tuple[Any, ...]:
    last = size - _BLOCK
    return tuple(_Block.from_address(address + start) for start in (0, last // 2, last))


_Block: Any = ctypes.c_char * _BLOCK
