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
from torch._C import _functorch

ALGORITHM = "xxh3"


def is_readable(tensor: torch.Tensor) -> bool:
    """Whether the tensor has content in memory: not sparse, meta, fake, wrapped or freed.

    Reading a tensor whose storage was freed (FSDP does so) ends the process.
    """
    return (
        type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        and tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and not tensor.is_quantized
        and not tensor.is_nested
        and _has_memory(tensor)
        and (tensor.numel() == 0 or _is_within_storage(tensor))
    )


def _is_within_storage(tensor: torch.Tensor) -> bool:
    """Whether the storage reaches to the last element; it may have been freed, or in part."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    return tensor.untyped_storage().size() >= (last + 1) * tensor.element_size()


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether it does not merely stand for another one, or for zeros, at the address 0."""
    return not (
        _functorch.is_functorch_wrapped_tensor(tensor)
        or torch._is_functional_tensor(tensor)  # noqa: SLF001  there is no public way to ask
        or tensor._is_zerotensor()  # noqa: SLF001  see above
    )


@torch.no_grad()
def fingerprint(tensor: torch.Tensor) -> int:
    """Return 64 bits that stand for the content, dtype and shape of a readable dense tensor."""
    dense = tensor.detach()
    if dense.is_conj():
        dense = dense.resolve_conj()
    if dense.is_neg():
        dense = dense.resolve_neg()
    kind = zlib.crc32(f"{dense.dtype} {tuple(dense.shape)}".encode())
    if dense.element_size() == 1:
        dense = dense.view(torch.uint8)  # torch can't copy those of less than a byte
    dense = dense.cpu().contiguous()
    size = dense.numel() * dense.element_size()
    # Not through numpy(): it makes the storage unresizable for good, and FSDP then fails.
    content = (ctypes.c_char * size).from_address(dense.data_ptr()) if size else b""
    return int(xxhash.xxh3_64_intdigest(content, seed=kind))


@torch.no_grad()
def largest(tensor: torch.Tensor) -> float:
    """Return the largest magnitude of a readable tensor: 0.0 if all is zero, NaN if any is NaN.

    Of complex numbers that of their parts.

    One pass, without overflow in half precision; -0.0 counts as zero.
    """
    dense = tensor.detach()
    if dense.numel() == 0:
        return 0.0
    if dense.is_complex():  # of large parts the magnitude overflows; the largest part says as much
        dense = torch.view_as_real(dense.resolve_conj())
    if not dense.is_floating_point() or dense.element_size() == 1:
        dense = dense.float()
    return float(torch.linalg.vector_norm(dense, math.inf))


def digest_text(value: int) -> str:
    """Write a fingerprint as a trace does, with its algorithm."""
    return f"{ALGORITHM}:{value:016x}"
