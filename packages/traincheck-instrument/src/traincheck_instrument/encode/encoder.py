"""Encodes values of the program.

Takes a snapshot: the result shares nothing with the value. Of an object of the program only the
type is asked, so one with a hostile `__getattr__` or `__repr__` is safe.
"""

from __future__ import annotations

import enum
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # torch's stub lacks it

from traincheck_instrument.encode.containers import Encode, Walk, container_encoder
from traincheck_instrument.encode.names import TypeTable, type_name
from traincheck_instrument.encode.objects import Attributes, attributes_reader
from traincheck_instrument.encode.scalars import (
    INT64,
    MAX_TEXT,
    Json,
    encode_bytes,
    encode_complex,
    encode_float,
    encode_integer,
    encode_text,
)
from traincheck_instrument.encode.tensors import NotDescribedError, TensorDescriber

if TYPE_CHECKING:
    from collections.abc import Callable

_SCALARS: tuple[tuple[type, Encode], ...] = (
    (int, lambda value, _: encode_integer(int.__int__(value))),
    (float, lambda value, _: encode_float(float.__float__(value))),
    (str, lambda value, _: encode_text(value)),
    (complex, lambda value, _: encode_complex(complex.__pos__(value))),
    (bytes, lambda value, _: encode_bytes(bytes.__len__(value))),
    (bytearray, lambda value, _: encode_bytes(bytearray.__len__(value))),
    (memoryview, lambda value, _: _encode_view(value)),
)
_TENSOR = torch.Tensor  # the type of most values
_NUMBERS = frozenset({bool, int, float, complex})


class Encoder:
    """Encodes values; remembers what it found out about their types.

    To be called with torch functions disabled, as `TensorDescriber` is.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}  # id of a tracked object: its name
        self.tensor = TensorDescriber()
        self.dtype, self.device = self.tensor.dtype, self.tensor.device
        self.type_name = TypeTable(type_name).__getitem__
        self._describe_plain = self.tensor.describer(_TENSOR)
        self._encoders = TypeTable(self._encoder_of)
        self._known_encoders = self._encoders.known

    def __call__(self, value: Any, walk: Walk | None = None) -> Json:
        """Return `value` as JSON; long texts and long, deep or cyclic containers are cut."""
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is _TENSOR:
            return {"tensor": self._describe_plain(value)}
        if kind is int:
            return value if -INT64 <= value < INT64 else encode_integer(value)
        if kind is float:
            return value if isfinite(value) else encode_float(value)
        if kind is str:
            is_plain = len(value) <= MAX_TEXT and value.isascii()
            return value if is_plain else encode_text(value)
        encode = self._known_encoders.get(id(kind)) or self._encoders[kind]
        return encode(value, walk)

    def name_object(self, key: int, name: str | None) -> None:
        """Tell an object, by its id, with a name from now on; None: without."""
        if name is None:
            self.names.pop(key, None)
        else:
            self.names[key] = name

    def _encoder_of(self, kind: type) -> Encode:
        """Return what encodes the values of a type that is none of the plain ones."""
        if issubclass(kind, torch.Tensor) and not issubclass(kind, UninitializedTensorMixin):
            return self._tensor_encoder(kind)
        if kind is torch.dtype:
            return lambda value, _: {"dtype": self.dtype(value)}
        if kind is torch.device:
            return lambda value, _: {"device": self.device(value)}
        return (
            container_encoder(kind, self)
            or self._scalar_encoder(kind)
            or self._object_encoder(type_name(kind), attributes_reader(kind))
        )

    def _tensor_encoder(self, kind: type) -> Encode:
        describe = self.tensor.describer(kind)
        encode_object = self._object_encoder(type_name(kind), None)

        def encode(value: Any, walk: Walk | None) -> Json:
            try:
                return {"tensor": describe(value)}
            except NotDescribedError:
                return encode_object(value, walk)

        return encode

    def _scalar_encoder(self, kind: type) -> Encode | None:
        if issubclass(kind, enum.Enum):  # its name says more than the number that it may be
            return None
        for base, encode in _SCALARS:
            if issubclass(kind, base):
                return encode
        numpy = sys.modules.get("numpy")
        if numpy is not None and issubclass(kind, numpy.generic):
            return self._numpy_scalar_encoder(kind, numpy.generic.item)
        return None

    def _numpy_scalar_encoder(self, kind: type, plain: Callable[[Any], Any]) -> Encode:
        """Encode a scalar of numpy as the number that it is; a few are no numbers of Python."""
        encode_object = self._object_encoder(type_name(kind), None)

        def encode(value: Any, walk: Walk | None) -> Json:
            number = plain(value)
            is_plain = type(number) in _NUMBERS
            return self(number, walk) if is_plain else encode_object(value, walk)

        return encode

    def _object_encoder(self, name: str, read_attributes: Attributes | None) -> Encode:
        def encode(value: Any, _: Walk | None) -> Json:
            described: dict[str, Json] = {"type": name}
            if (own_name := self.names.get(id(value))) is not None:
                described["name"] = own_name
            if read_attributes is not None and (attributes := read_attributes(value)):
                described["attributes"] = attributes
            return {"object": described}

        return encode


def _encode_view(value: memoryview) -> Json:
    try:
        return encode_bytes(value.nbytes)
    except ValueError:  # it was released
        return {"object": {"type": "builtins.memoryview"}}
