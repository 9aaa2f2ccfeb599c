"""What holds of all elements of a tensor, as far as silent errors show in it.

A model is given batches, and judged by losses: probabilities where scores belong, rows that were
lost on their way, and what is not finite can be told from the elements alone. So can a parameter
that nothing was drawn for.
"""

from __future__ import annotations

import math

import torch

from traincheck_instrument.content.digest import comparable

MOST_BYTES = 2**24  # of a tensor whose elements are looked at for this; read in 1 ms
MOST_BYTES_FAR = 2**20  # of one that lies on a device

_ROUNDINGS = 16  # how often the error of one rounding a sum of shares may be off
_LEAST_MARGIN = 1e-3  # of a sum of shares that are told by their logarithms
_A_MATRIX = 2  # dimensions
_FIRST = 64  # elements that mostly tell that not all are equal


def is_small(tensor: torch.Tensor) -> bool:
    """Whether a tensor may be read at a call, beside what is read of the variables."""
    size = tensor.numel() * tensor.element_size()
    return size <= (MOST_BYTES if tensor.device.type == "cpu" else MOST_BYTES_FAR)


def facts_of(tensor: torch.Tensor) -> dict[str, bool]:
    """Say of a readable tensor of floating-point numbers what holds of its elements.

    Returns:
        `finite`: all are. Of what has dimensions `in_unit_interval`: all are from 0 to 1. Of
        matrices and stacks of them also `rows_sum_to_one`: the last dimension holds shares of a
        whole, and `has_zero_row`: of the first dimension an item is all zero. Of matrices alone
        `rows_are_log_shares`: each row holds the logarithms of such shares. Nothing of an empty
        tensor, or of other numbers.
    """
    if not tensor.is_floating_point() or tensor.element_size() == 1 or tensor.numel() == 0:
        return {}
    dense = comparable(tensor)
    low, high = torch.stack(torch.aminmax(dense)).tolist()
    facts = {"finite": math.isfinite(low) and math.isfinite(high)}
    if dense.dim() > 0:
        facts["in_unit_interval"] = low >= 0.0 and high <= 1.0
    if dense.dim() >= _A_MATRIX:
        facts["rows_sum_to_one"] = facts["in_unit_interval"] and _rows_sum_to_one(dense)
        facts["has_zero_row"] = not (low > 0.0 or high < 0.0) and _has_zero_row(dense.flatten(1))
    if dense.dim() == _A_MATRIX:
        facts["rows_are_log_shares"] = high <= 0.0 and _rows_are_log_shares(dense)
    return facts


def all_equal(tensor: torch.Tensor) -> bool | None:
    """Say of a readable tensor whether all its elements are equal; NaN equals nothing.

    Measured: 30 us where the first elements differ, else as long as to read all.

    Returns:
        None of fewer than two elements, of other numbers than floating-point ones, and of what is
        large and lies on a device.
    """
    if not tensor.is_floating_point() or tensor.element_size() == 1 or tensor.numel() <= 1:
        return None
    dense = comparable(tensor)
    if dense.device.type != "cpu":
        if not is_small(dense):
            return None
        dense = dense.cpu()
    start = dense.view(-1) if dense.is_contiguous() else dense[(0,) * (dense.dim() - 1)]
    return _is_one_value(start[:_FIRST]) and _is_one_value(dense)


def _is_one_value(dense: torch.Tensor) -> bool:
    low, high = torch.aminmax(dense)
    return bool(low == high)


def _rows_sum_to_one(dense: torch.Tensor) -> bool:
    # What is kept in double precision may have been computed in single.
    margin = _ROUNDINGS * max(torch.finfo(dense.dtype).eps, torch.finfo(torch.float32).eps)
    dtype = torch.promote_types(dense.dtype, torch.float32)
    first = dense[(0,) * (dense.dim() - 1)]  # tells mostly that they don't
    if abs(first.sum(dtype=dtype).item() - 1) > margin:
        return False
    return bool((dense.sum(-1, dtype=dtype) - 1).abs().max() <= margin)


def _rows_are_log_shares(dense: torch.Tensor) -> bool:
    dtype = torch.promote_types(dense.dtype, torch.float32)
    # A logarithm that is rounded shifts its share by more than the share is rounded.
    margin = max(_ROUNDINGS * torch.finfo(dense.dtype).eps, _LEAST_MARGIN)
    if abs(dense[0].to(dtype).exp().sum().item() - 1) > margin:
        return False
    return bool((dense.to(dtype).exp().sum(-1) - 1).abs().max() <= margin)


def _has_zero_row(rows: torch.Tensor) -> bool:
    """Whether a row is all zero; to ask each element takes five times as long as to add them up."""
    sums = rows.sum(1)
    if int(sums.count_nonzero()) == len(rows):
        return False
    return not bool(rows[sums == 0].any(1).all())
