"""Numbers that a program keeps: as they are, of numpy, or in tensors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.content.digest import is_readable
from traincheck_instrument.encode.names import type_name

if TYPE_CHECKING:
    from traincheck_instrument.encode import Encoder
    from traincheck_instrument.variables.variable import Json


def encoded_number(value: Any, encoder: Encoder, *, may_wait: bool = False) -> Json:
    """Return a number of any kind as JSON; of what is none its type, so that no old one stays.

    Args:
        value: Where a number is expected; None: there is none.
        encoder: Encodes it.
        may_wait: As for `number_of`.
    """
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return encoder(number_of(value, may_wait=may_wait))
    if value is None or _is_of_numbers(kind):
        return encoder(value)
    return {"object": {"type": type_name(kind)}}


def _is_of_numbers(kind: type) -> bool:
    if issubclass(kind, int | float):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.generic)


def number_of(tensor: torch.Tensor, *, may_wait: bool = False) -> float | None:
    """Return the number that a tensor holds; None if it has more or none.

    Args:
        tensor: Any tensor.
        may_wait: It may be fetched from a device, which waits for what that has to do.
    """
    is_here = may_wait or tensor.device.type == "cpu"
    if not is_here or tensor.numel() != 1 or not is_readable(tensor):
        return None
    number = tensor.item()
    return number if type(number) is float or type(number) is int else None
