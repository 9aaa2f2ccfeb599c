"""Writes values of the program as JSON, without the detour over objects for those that are common.

An `Encoder` makes dictionaries, which the collector of garbage visits and a writer turns into text.
Most values of a step are few: tensors of a handful of shapes, small numbers, modules that train.
"""

from __future__ import annotations

import functools
from itertools import islice
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from traincheck_instrument.encode.containers import MAX_ITEMS, MAX_ITEMS_IN_ALL
from traincheck_instrument.encode.names import TypeTable
from traincheck_instrument.encode.scalars import INT64, start_of_text
from traincheck_instrument.encode.tensors import is_wrapped
from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traincheck_instrument.encode.encoder import Encoder

    Write: TypeAlias = Callable[[Any], str]

_MAX_KNOWN = 4096  # texts of tensors; a program with sequences of any length has ever new shapes
_MAX_INNER = MAX_ITEMS_IN_ALL // MAX_ITEMS - 1  # items of each item: then all of them are told
_fields_of_module = vars(torch.nn.Module)["__dict__"].__get__


class TextEncoder:
    """Returns the JSON text of what `Encoder` makes of a value; to be called as that is."""

    def __init__(self, encode: Encoder) -> None:
        self._encode = encode
        self._tensors: dict[tuple[object, ...], str] = {}
        self._writers = TypeTable(self._writer_of)
        self._write_tensor = self._tensor_text  # bound once, to be known again
        plain: tuple[tuple[type, Write], ...] = (
            (NoneType, lambda _: "null"),
            (bool, lambda value: "true" if value else "false"),
            (int, lambda value: repr(value) if -INT64 <= value < INT64 else self._write(value)),
            (float, lambda value: repr(value) if isfinite(value) else self._write(value)),
            (str, self._write),
            (torch.Tensor, self._write_tensor),
        )
        self._known = self._writers.known
        self._known |= {id(kind): write for kind, write in plain}
        self._flat = frozenset(id(kind) for kind, _ in plain)  # types without parts, beside tensors

    def __call__(self, value: Any) -> str:
        """Return `value` as JSON text."""
        kind = type(value)
        write = self._known.get(id(kind)) or self._writers[kind]
        return write(value)

    def _writer_of(self, kind: type) -> Write:
        """Return what writes the values of a type."""
        if issubclass(kind, torch.Tensor) and self._encode.tensor.is_plain(kind):
            return self._write_tensor
        if issubclass(kind, torch.nn.Module):
            return self._module_writer()
        if kind is tuple or kind is torch.Size:
            return self._write_tuple
        return self._write_list if kind is list else self._write

    def _write(self, value: Any) -> str:
        return dumps(self._encode(value))

    def _tensor_text(self, value: torch.Tensor) -> str:
        try:
            key = (value.shape, value.dtype, value.device, value.requires_grad)
            known = self._tensors.get(key)
        except (RuntimeError, TypeError):  # a nested tensor; a size that is symbolic
            return self._write(value)
        if known is None or value.layout is not torch.strided or is_wrapped(value):
            return self._learn_tensor(value, key)
        return known

    def _learn_tensor(self, value: torch.Tensor, key: tuple[object, ...]) -> str:
        described = self._encode(value)
        text = dumps(described)
        if "layout" not in described.get("tensor", {"layout": None}):
            if len(self._tensors) >= _MAX_KNOWN:
                self._tensors.clear()
            self._tensors[key] = text
        return text

    def _module_writer(self) -> Write:
        """Return what writes modules of one type: as training or not, and by name."""
        names, write_any = self._encode.names, self._write
        texts: dict[tuple[bool, str | None], str] = {}

        def write(module: torch.nn.Module) -> str:
            training = _fields_of_module(module).get("training")
            if type(training) is not bool:
                return write_any(module)
            key = training, names.get(id(module))
            if key not in texts:
                texts[key] = write_any(module)
            return texts[key]

        return write

    def _write_tuple(self, value: tuple[Any, ...]) -> str:
        items = self._items(value)
        return self._write(value) if items is None else f'{{"tuple":[{items}]}}'

    def _write_list(self, value: list[Any]) -> str:
        items = self._items(value)
        return self._write(value) if items is None else f"[{items}]"

    def _items(self, value: Sequence[Any], *, is_inner: bool = False) -> str | None:
        """Return the text of items without parts, or of short lists of such; None of others."""
        length = len(value)
        if is_inner and length > _MAX_INNER:
            return None
        texts: list[str] = []
        for item in islice(value, MAX_ITEMS):
            kind = type(item)
            write = self._known.get(id(kind)) or self._writers[kind]
            if write is self._write_tensor or id(kind) in self._flat:
                texts.append(write(item))
            elif not is_inner and (kind is tuple or kind is list):
                inner = self._items(item, is_inner=True)
                if inner is None:
                    return None
                texts.append(f'{{"tuple":[{inner}]}}' if kind is tuple else f"[{inner}]")
            else:
                return None
        if length > MAX_ITEMS:
            texts.append(f'{{"cut":"{length - MAX_ITEMS} more"}}')
        return ",".join(texts)


def key_text(name: str) -> str:
    """Return the JSON text of a name, which a program may have made up."""
    # To look one up that is no plain text would run code of its class.
    return _known_key_text(name) if type(name) is str else dumps(start_of_text(name))


@functools.lru_cache(maxsize=_MAX_KNOWN)
def _known_key_text(name: str) -> str:
    return dumps(start_of_text(name))
