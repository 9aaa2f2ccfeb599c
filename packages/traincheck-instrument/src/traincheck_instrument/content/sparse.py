"""Sparse tensors, such as gradients of `Embedding(sparse=True)`, as the dense ones they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import xxhash
from torch._C import TensorBase

from traincheck_instrument.content.digest import fingerprint, is_readable, seed_of
from traincheck_instrument.encode.tensors import is_wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPRESSED_ROWS = ("crow_indices", "col_indices", "values")
_COMPRESSED_COLUMNS = ("ccol_indices", "row_indices", "values")
# What gives them out, as they are: a tensor that was not coalesced stays so.
_PARTS: Mapping[torch.layout, tuple[str, ...]] = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: _COMPRESSED_ROWS,
    torch.sparse_bsr: _COMPRESSED_ROWS,
    torch.sparse_csc: _COMPRESSED_COLUMNS,
    torch.sparse_bsc: _COMPRESSED_COLUMNS,
}


def parts_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the indices and, last, the values of a sparse tensor; of any other nothing."""
    readers = _PARTS.get(tensor.layout, ())
    has_own_code = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if not readers or has_own_code or is_wrapped(tensor):
        return ()
    plain = tensor.detach()
    parts = tuple(vars(TensorBase)[name](plain) for name in readers)
    return parts if all(map(is_readable, parts)) else ()


def fingerprint_of(tensor: torch.Tensor, parts: tuple[torch.Tensor, ...]) -> int:
    """Return 64 bits that stand for what a sparse tensor keeps, in the order in which it does."""
    prints = b"".join(fingerprint(part).to_bytes(8, "little") for part in parts)
    return int(xxhash.xxh3_64_intdigest(prints, seed=seed_of(tensor.dtype, tensor.shape)))
