"""Turns values of a training program into what a trace may hold.

Takes a snapshot: the result shares nothing with the value. Of an object of the program only the
type is asked, so one with a hostile `__getattr__` or `__repr__` is safe.
"""

from __future__ import annotations

import enum
import math
from itertools import islice
from typing import Any, TypeAlias

import torch
from torch.nn.parameter import is_lazy

Json: TypeAlias = Any

_MAX_TEXT = 200
_MAX_ITEMS = 32
_MAX_DEPTH = 4
_INT64 = 2**63
_CONTAINERS: tuple[Any, ...] = (list, tuple, dict, set, frozenset)


class Encoder:
    """Encodes values; remembers how types, dtypes and devices are written."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # id of a tracked object: its name
        self._types: dict[type, str] = {}
        self._dtypes: dict[torch.dtype, str] = {}
        self._devices: dict[torch.device, str] = {}

    def __call__(self, value: Any, depth: int = 0) -> Json:  # noqa: PLR0911  hot path
        """Return `value` as JSON; containers are cut below a depth and behind a length."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_INT64 <= value < _INT64 else {"int": str(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is str:
            return _text(value)
        if issubclass(kind, torch.Tensor) and not is_lazy(value):
            return {"tensor": self.tensor(value)}
        if issubclass(kind, _CONTAINERS):
            return self._container(value, kind, depth)
        return self._other(value, kind)

    def tensor(self, value: torch.Tensor) -> dict[str, Json]:
        """Describe a tensor without reading it."""
        described: dict[str, Json] = {
            "shape": list(value.shape),
            "dtype": self.dtype(value.dtype),
            "device": self.device(value.device),
        }
        if value.requires_grad:
            described["requires_grad"] = True
        return described

    def dtype(self, dtype: torch.dtype) -> str:
        """Return torch's name of a dtype without its prefix."""
        if (name := self._dtypes.get(dtype)) is None:
            name = self._dtypes[dtype] = str(dtype).removeprefix("torch.")
        return name

    def device(self, device: torch.device) -> str:
        """Return a device as torch writes it, such as `cuda:0`."""
        if (name := self._devices.get(device)) is None:
            name = self._devices[device] = str(device)
        return name

    def type_name(self, kind: type) -> str:
        """Return the qualified name of a type."""
        if (name := self._types.get(kind)) is None:
            name = self._types[kind] = f"{kind.__module__}.{kind.__qualname__}"
        return name

    def _container(self, value: Any, kind: type, depth: int) -> Json:
        if depth >= _MAX_DEPTH:
            return {"cut": self.type_name(kind)}
        # The methods of the base type: those of a subclass are code of the program.
        base = next(base for base in _CONTAINERS if issubclass(kind, base))
        items = islice(dict.items(value) if base is dict else base.__iter__(value), _MAX_ITEMS)
        if base is dict:
            return {"dict": [[self(key, depth + 1), self(item, depth + 1)] for key, item in items]}
        encoded: list[Json] = [self(item, depth + 1) for item in items]
        if (more := base.__len__(value) - _MAX_ITEMS) > 0:
            encoded.append({"cut": f"{more} more"})
        if base is list:
            return encoded
        return {"tuple" if base is tuple else "set": encoded}

    def _other(self, value: Any, kind: type) -> Json:
        if kind is torch.dtype:
            return {"dtype": self.dtype(value)}
        if kind is torch.device:
            return {"device": self.device(value)}
        if kind in (bytes, bytearray):
            return {"bytes": {"length": len(value)}}
        described: dict[str, Json] = {"type": self.type_name(kind)}
        if (name := self.names.get(id(value))) is not None:
            described["name"] = name
        if issubclass(kind, torch.nn.Module):
            training = vars(value).get("training")
            if isinstance(training, bool):
                described["attributes"] = {"training": training}
        elif issubclass(kind, enum.Enum):
            described["attributes"] = {"name": str(object.__getattribute__(value, "_name_"))}
        return {"object": described}


def _text(value: str) -> Json:
    # A lone surrogate can't be written as UTF-8.
    clean = value[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8")
    if len(value) <= _MAX_TEXT:
        return clean
    return {"text": {"start": clean, "length": len(value)}}
