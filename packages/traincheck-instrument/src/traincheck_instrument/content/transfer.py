"""Fetches the content of many tensors from a device at once, and digests it.

A transfer of its own for each tensor would wait for the device each time.
"""

from __future__ import annotations

import ctypes
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import attrs
import torch
import xxhash

from traincheck_instrument.content.digest import comparable, resolved, seed_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CHUNK = 64 * 2**20  # bytes of one transfer; it bounds what is taken of the device's memory


@attrs.define
class _Chunk:
    """What is fetched by one transfer: pieces of tensors, each with what digests it."""

    pieces: list[torch.Tensor] = attrs.field(factory=list)
    hashers: list[Any] = attrs.field(factory=list)
    size: int = 0

    def add(self, piece: torch.Tensor, hasher: Any) -> None:
        self.pieces.append(piece)
        self.hashers.append(hasher)
        self.size += piece.numel()

    def digest(self) -> None:
        """Fetch the pieces, and take each in; then there are none."""
        if not self.pieces:
            return
        fetched = torch.cat(self.pieces).cpu()
        address = fetched.data_ptr()
        for piece, hasher in zip(self.pieces, self.hashers, strict=True):
            hasher.update((ctypes.c_char * piece.numel()).from_address(address))
            address += piece.numel()
        self.pieces.clear()
        self.hashers.clear()
        self.size = 0


def fetch_fingerprints(tensors: Sequence[torch.Tensor], *, chunk: int = _CHUNK) -> list[int]:
    """Return the fingerprints of readable tensors, as `fingerprint` has them.

    Args:
        tensors: They may lie on several devices.
        chunk: How many bytes are fetched by one transfer.
    """
    hashers = [xxhash.xxh3_64(seed=seed_of(one.dtype, one.shape)) for one in tensors]
    chunks: defaultdict[torch.device, _Chunk] = defaultdict(_Chunk)
    for tensor, hasher in zip(tensors, hashers, strict=True):
        current = chunks[tensor.device]
        for piece in _pieces(_bytes_of(tensor), chunk):
            if current.size + piece.numel() > chunk:
                current.digest()
            current.add(piece, hasher)
    for current in chunks.values():
        current.digest()
    return [int(hasher.intdigest()) for hasher in hashers]


def fetch_zero_and_finite(tensors: Iterable[torch.Tensor]) -> list[tuple[bool, bool]]:
    """Tell of each readable tensor if all is zero, and if all is finite: by one transfer a kind."""
    numbers = [comparable(tensor) for tensor in tensors]
    kinds: defaultdict[tuple[torch.device, torch.dtype], list[int]] = defaultdict(list)
    for index, dense in enumerate(numbers):
        if dense.numel():
            kinds[dense.device, dense.dtype].append(index)
    told = [(True, True)] * len(numbers)
    for indices in kinds.values():
        norms = torch._foreach_norm([numbers[index] for index in indices], math.inf)  # noqa: SLF001  one kernel for all
        for index, magnitude in zip(indices, torch.stack(norms).tolist(), strict=True):
            told[index] = magnitude == 0.0, math.isfinite(magnitude)
    return told


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the content in logical row-major order, as bytes in one dimension."""
    dense = resolved(tensor)
    if dense.is_complex():
        dense = torch.view_as_real(dense)
    return dense.contiguous().view(-1).view(torch.uint8)


def _pieces(content: torch.Tensor, size: int) -> Iterator[torch.Tensor]:
    for start in range(0, content.numel(), size):
        yield content[start : start + size]
