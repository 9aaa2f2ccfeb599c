"""How values stand in the documents: JSON primitives as they are, all else as a one-key object.

| key | payload |
| --- | --- |
| `tensor` | the fields of `TensorValue` |
| `object` | the fields of `ObjectValue` |
| `dtype`, `device` | text, as `float32` or `cuda:0` |
| `float` | `"nan"`, `"inf"` or `"-inf"` |
| `int` | decimal text of an integer beyond 64 bit |
| `tuple`, `set` | list of values |
| `dict` | list of pairs `[key, value]` |
| `text` | `{"start": ..., "length": n}`: a text cut at its start, with its full length |
| `bytes` | `{"length": n}` |
| `cut` | qualified type name of a value that lies too deep, or how many more items there were |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

Scalar: TypeAlias = str | int | float | bool | None
Json: TypeAlias = Scalar | Sequence["Json"] | Mapping[str, "Json"]


@attrs.frozen(kw_only=True)
class TensorValue:
    """What a trace keeps of one tensor."""

    shape: tuple[int, ...]
    dtype: str  # torch's name without the "torch." prefix
    device: str
    requires_grad: bool = False
    digest: str | None = (
        None  # "<algorithm>:<hex digits>"; equal content, dtype, shape: equal digest
    )
    zero: bool | None = None  # every element is zero
    finite: bool | None = None
    statistics: Mapping[str, Json] | None = None
    placements: tuple[str, ...] | None = None  # of a distributed tensor, by mesh dimension
    global_shape: tuple[int, ...] | None = (
        None  # of a distributed tensor: `shape` is the local part
    )
    data: tuple[Json, ...] | None = None  # in logical row-major order


@attrs.frozen(kw_only=True)
class ObjectValue:
    """An object of the training program: its type and what was chosen of its attributes."""

    type: str
    name: str | None = None  # the name of a tracked object, as "optimizer0"
    attributes: Mapping[str, Json] = attrs.field(factory=dict)
