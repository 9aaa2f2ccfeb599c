"""What the formats `stats` and `full` tell of a tensor's content, beside its digest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import torch

from traincheck_instrument.encode.scalars import (
    Json,
    encode_complex,
    encode_float,
    encode_integer,
)

if TYPE_CHECKING:
    from traincheck_instrument.settings import TensorFormat

MOST_ELEMENTS = 2**16  # that are told each; of 24 bytes at most, where a line has 16 MB
_CHUNK = 2**20  # elements that are converted at once


def described_content(tensor: torch.Tensor, tensor_format: TensorFormat) -> dict[str, Json]:
    """Return the fields of a readable tensor that a format asks for.

    `full` tells each element. Of a tensor that has too many, and of a dtype that torch can't
    convert, it tells what `stats` does, or nothing.
    """
    dense = tensor.detach()
    if tensor_format == "full" and dense.numel() <= MOST_ELEMENTS:
        elements = _elements(dense)
        if elements is not None:
            return {"data": elements}
    statistics = _statistics(dense)
    return {} if statistics is None else {"statistics": statistics}


@attrs.define
class _Moments:
    """Mean and spread of numbers that come in chunks, in double precision."""

    count: int = 0
    mean: float = 0.0
    spread: float = 0.0  # sum of squared distances from the mean

    def add(self, numbers: torch.Tensor) -> None:
        count = numbers.numel()
        mean = float(numbers.mean())
        distance = mean - self.mean
        total = self.count + count
        self.spread += float((numbers - mean).square_().sum())
        self.spread += distance * distance * self.count * count / total
        self.mean += distance * count / total
        self.count = total


def _statistics(dense: torch.Tensor) -> dict[str, Json] | None:
    """Return the statistics of a tensor; None if it has no numbers that torch can convert."""
    if dense.numel() == 0:
        return {}
    moments = _Moments()
    low, high, squares = math.inf, -math.inf, 0.0
    zeros = nans = infinities = 0
    flat = dense.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        part = flat[start : start + _CHUNK]
        numbers = _converted(part.abs() if part.is_complex() else part)
        if numbers is None:
            return None
        lowest, highest = (float(one) for one in torch.aminmax(numbers))
        # Not min(): what it makes of NaN depends on the order.
        low = lowest if math.isnan(lowest) or lowest < low else low
        high = highest if math.isnan(highest) or highest > high else high
        squares += float(numbers.dot(numbers))
        zeros += numbers.numel() - int(numbers.count_nonzero())
        nans += int(numbers.isnan().sum())
        infinities += int(numbers.isinf().sum())
        moments.add(numbers)
    if nans:
        low = high = math.nan
    measured = {
        "min": low,
        "max": high,
        "mean": moments.mean,
        "std": math.sqrt(moments.spread / moments.count),
        "norm": math.sqrt(squares),
    }
    counted = {"zeros": zeros, "nan": nans, "inf": infinities}
    return {name: encode_float(value) for name, value in measured.items()} | counted


def _elements(dense: torch.Tensor) -> list[Json] | None:
    """Return the elements in logical order; None if torch can't convert them."""
    if dense.is_floating_point() and dense.element_size() == 1:
        converted = _converted(dense)
        if converted is None:
            return None
        dense = converted
    try:
        elements: list[Any] = dense.reshape(-1).tolist()
    except (RuntimeError, TypeError, ValueError):
        return None
    if dense.is_complex():
        return [encode_complex(one) for one in elements]
    if dense.is_floating_point():
        return [encode_float(one) for one in elements]
    return elements if dense.dtype is torch.bool else [encode_integer(one) for one in elements]


def _converted(numbers: torch.Tensor) -> torch.Tensor | None:
    try:
        return numbers.to("cpu", torch.float64)
    except (RuntimeError, TypeError):  # of less than a byte, or mere bits
        return None
