"""What is told of an object beside its type.

Of those of the program nothing: asking them would run its code.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from traincheck_instrument.encode.names import (
    FUNCTIONS,
    function_name,
    method_name,
    module_name,
    type_name,
)
from traincheck_instrument.encode.scalars import (
    Json,
    encode_float,
    encode_integer,
    encode_text,
    start_of_text,
)

Attributes: TypeAlias = Callable[[Any], Mapping[str, Json]]

_PRIMITIVES: Mapping[type, Callable[[Any], Json]] = {
    bool: bool,
    int: encode_integer,
    float: encode_float,
    str: encode_text,
}
# The instances' own dictionaries, whatever a class says that `__dict__` is.
_fields_of_enum = vars(enum.Enum)["__dict__"].__get__
_fields_of_module = vars(torch.nn.Module)["__dict__"].__get__


def attributes_reader(kind: type) -> Attributes | None:
    """Return what reads the attributes that are told of objects of a type, if any are."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return _array_reader(numpy.ndarray)
    return next((read for base, read in _READERS if issubclass(kind, base)), None)


def _of_enum(member: Any) -> Mapping[str, Json]:
    fields = _fields_of_enum(member)
    name, value = fields.get("_name_"), fields.get("_value_")
    told: dict[str, Json] = {"name": start_of_text(name)} if type(name) is str else {}
    if (encode := _PRIMITIVES.get(type(value))) is not None:
        told["value"] = encode(value)
    return told


def _of_module(module: Any) -> Mapping[str, Json]:
    training = _fields_of_module(module).get("training")
    return {"training": training} if type(training) is bool else {}


def _of_generator(generator: Any) -> Mapping[str, Json]:
    seed = encode_integer(torch.Generator.initial_seed(generator))
    return {"device": {"device": str(torch.Generator.device.__get__(generator))}, "seed": seed}


def _array_reader(array_type: Any) -> Attributes:
    shape_of, dtype_of = array_type.shape.__get__, array_type.dtype.__get__

    def of_array(array: Any) -> Mapping[str, Json]:
        shape = {"tuple": list(shape_of(array))}
        return {"shape": shape, "dtype": start_of_text(str(dtype_of(array)))}

    return of_array


_READERS: tuple[tuple[type | tuple[type, ...], Attributes], ...] = (
    (torch.nn.Module, _of_module),
    (enum.Enum, _of_enum),
    (FUNCTIONS, lambda function: {"name": function_name(function)}),
    (types.MethodType, lambda method: {"name": method_name(method)}),
    (type, lambda kind: {"name": type_name(kind)}),
    (types.ModuleType, lambda module: {"name": module_name(module)}),
    (torch.Generator, _of_generator),
    ((torch.memory_format, torch.layout, torch.qscheme), lambda one: {"name": str(one)}),
)
