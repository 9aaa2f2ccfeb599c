"""How values stand in the documents: JSON primitives as they are, all else as a one-key object.

| key | payload | read as |
| --- | --- | --- |
| `tensor` | the fields of `TensorValue` | `TensorValue` |
| `object` | the fields of `ObjectValue` | `ObjectValue` |
| `dtype` | text, as `float32` | `DtypeValue` |
| `device` | text, as `cuda:0` | `DeviceValue` |
| `float` | `"nan"`, `"inf"` or `"-inf"` | `float` |
| `int` | decimal text of an integer beyond 64 bit | `int` |
| `tuple` | list of values | `tuple` |
| `set` | list of values | `SetValue` |
| `dict` | list of pairs `[key, value]` | `DictValue` |
| `text` | `{"start": ..., "length": n}`: the start of a long text | `CutText` |
| `bytes` | `{"length": n}` | `BytesValue` |
| `cut` | type of what lies too deep, or how many more items there were | `CutValue` |

Records hold values raw, as they stand in the document; `codec.structure_value` reads one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import attrs

from traincheck_trace_schema.constraints import Count, Dtype, Matches

Scalar: TypeAlias = str | int | float | bool | None
Json: TypeAlias = Scalar | Sequence["Json"] | Mapping[str, "Json"]


@attrs.frozen
class Encoded:
    """Marks JSON that is a value in the sense of this module."""


Value: TypeAlias = Annotated[Json, Encoded()]
Digest: TypeAlias = Annotated[str, Matches("[a-z0-9_]+:[0-9a-f]+", "xxh3:0123456789abcdef")]


@attrs.frozen(kw_only=True)
class TensorValue:
    """What a trace keeps of one tensor."""

    shape: tuple[Count | None, ...]  # None: not one number (nested), or not known (symbolic)
    dtype: Dtype  # torch's name without the "torch." prefix
    device: str
    layout: str | None = None  # of one that is no dense array: "sparse_coo", "quantized", "fake"
    requires_grad: bool = False
    digest: Digest | None = None  # equal content, dtype, shape: equal digest
    zero: bool | None = None  # every element is zero
    finite: bool | None = None
    facts: Mapping[str, bool] | None = None  # what else holds of all elements, by name
    statistics: Mapping[str, Value] | None = None
    placements: tuple[str, ...] | None = None  # of a distributed tensor, by mesh dimension
    global_shape: tuple[Count, ...] | None = None  # of one: `shape` is the local part
    data: tuple[Value, ...] | None = None  # in logical row-major order


@attrs.frozen(kw_only=True)
class ObjectValue:
    """An object of the training program: its type and what was chosen of its attributes."""

    type: str
    name: str | None = None  # the name of a tracked object, as "optimizer0"
    attributes: Mapping[str, Value] = attrs.field(factory=dict)


@attrs.frozen
class DtypeValue:
    """A dtype of torch, without the "torch." prefix."""

    name: str


@attrs.frozen
class DeviceValue:
    """A device of torch."""

    name: str


@attrs.frozen(kw_only=True)
class CutText:
    """A long text: its start, and its full length in characters."""

    start: str
    length: Count


@attrs.frozen(kw_only=True)
class BytesValue:
    """Bytes, of which only the number is kept."""

    length: Count


@attrs.frozen
class CutValue:
    """What was left out: the type of a value that lies too deep, or how many more items."""

    what: str


@attrs.frozen
class SetValue:
    """A set; its items may be of any type."""

    items: tuple[TypedValue, ...]


@attrs.frozen
class DictValue:
    """A dictionary, as pairs: its keys may be of any type."""

    pairs: tuple[tuple[TypedValue, TypedValue], ...]


TypedValue: TypeAlias = (
    "Scalar | list[TypedValue] | tuple[TypedValue, ...] | TensorValue | ObjectValue | DtypeValue"
    " | DeviceValue | CutText | BytesValue | CutValue | SetValue | DictValue"
)

# What the payload of each key must be. A class stands for an object with its fields.
PAYLOADS: Final[Mapping[str, object]] = {
    "tensor": TensorValue,
    "object": ObjectValue,
    "dtype": Dtype,
    "device": str,
    "float": Literal["nan", "inf", "-inf"],
    "int": Annotated[str, Matches("-?[0-9]+", "18446744073709551616")],
    "tuple": tuple[Value, ...],
    "set": tuple[Value, ...],
    "dict": tuple[tuple[Value, Value], ...],
    "text": CutText,
    "bytes": BytesValue,
    "cut": str,
}
