"""Digests of tensors: equal content, dtype and shape give an equal digest, in every process.

xxh3 over the bytes in logical row-major order, so that the memory layout does not matter; measured
at 64 GB/s against 7 GB/s for torch.hash_tensor, which is also blind to order. Dtype and shape go in
as the seed.
"""

from __future__ import annotations

import ctypes
import math
import zlib

import torch
import xxhash
from torch._C import TensorBase, _functorch

ALGORITHM = "xxh3"

_is_contiguous = TensorBase.is_contiguous


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the tensor has content in memory: not sparse, meta, fake, wrapped or freed.

    Reading a tensor whose storage was freed (FSDP does so) ends the process.
    """
    return (
        type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        and tensor.layout is torch.strided
        and not tensor.is_meta
        and not tensor.is_quantized
        and not tensor.is_nested
        and _has_memory(tensor)
        and (tensor.numel() == 0 or _is_within_storage(tensor))
    )


def _is_within_storage(tensor: torch.Tensor) -> bool:
    """Whether the storage reaches to the last element; it may have been freed, or in part."""
    if _is_contiguous(tensor):
        last = tensor.storage_offset() + tensor.numel() - 1
    else:
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    return tensor.untyped_storage().nbytes() >= (last + 1) * tensor.element_size()


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether it does not merely stand for another one, or for zeros, at the address 0."""
    return not (
        _functorch.is_functorch_wrapped_tensor(tensor)
        or torch._is_functional_tensor(tensor)  # noqa: SLF001  there is no public way to ask
        or tensor._is_zerotensor()  # noqa: SLF001  see above
    )


def resolved(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that has in memory what this one stands for, outside of autograd."""
    dense = tensor.detach()
    if dense.is_conj():
        dense = dense.resolve_conj()
    if dense.is_neg():
        dense = dense.resolve_neg()
    return dense.view(torch.uint8) if dense.element_size() == 1 else dense  # of less than a byte


def seed_of(dtype: torch.dtype, shape: torch.Size) -> int:
    """Return what makes equal bytes of another dtype or shape another content."""
    return zlib.crc32(f"{dtype} {tuple(shape)}".encode())


def fingerprint(tensor: torch.Tensor) -> int:
    """Return 64 bits that stand for the content, dtype and shape of a readable dense tensor."""
    seed = seed_of(tensor.dtype, tensor.shape)
    dense = resolved(tensor).cpu().contiguous()
    size = dense.numel() * dense.element_size()
    # Not through numpy(): it makes the storage unresizable for good, and FSDP then fails.
    content = (ctypes.c_char * size).from_address(dense.data_ptr()) if size else b""
    return int(xxhash.xxh3_64_intdigest(content, seed=seed))


def zero_and_finite(tensor: torch.Tensor) -> tuple[bool, bool]:
    """Tell of a readable tensor if all is zero (-0.0 too), and if all is finite."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_floating_point() and tensor.element_size() > 1:
        # The sum takes half of the time; what is not finite makes it so, whatever comes to it.
        total = tensor.sum().item()
        if total != 0.0 and math.isfinite(total):
            return False, True
    magnitude = largest(tensor)
    return magnitude == 0.0, math.isfinite(magnitude)


def largest(tensor: torch.Tensor) -> float:
    """Return the largest magnitude of a readable tensor: 0.0 if all is zero, NaN if any is NaN.

    Of complex numbers that of their parts.

    One pass, without overflow in half precision; -0.0 counts as zero.
    """
    dense = comparable(tensor)
    if dense.numel() == 0:
        return 0.0
    low, high = (float(one) for one in torch.aminmax(dense))
    return low if math.isnan(low) else max(abs(low), abs(high))


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a tensor as torch can compare them; of complex ones the parts."""
    dense = tensor.detach()
    if dense.is_complex():  # of large parts the magnitude overflows; the largest part says as much
        dense = torch.view_as_real(dense.resolve_conj())
    if not dense.is_floating_point() or dense.element_size() == 1:
        dense = dense.float()
    return dense


def digest_text(value: int) -> str:
    """Write a fingerprint as a trace does, with its algorithm."""
    return f"{ALGORITHM}:{value:016x}"
