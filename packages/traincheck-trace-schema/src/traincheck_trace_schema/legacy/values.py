"""Values of 0.x, one-key objects from type name to payload, as values of 1.0.

What 0.x lost is not invented: a null that may stand for a number that is not finite, and elements
of containers that were not kept, become `cut`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_trace_schema.values import Json

Fields: TypeAlias = dict[str, Any]

DIGEST = "row0"  # the algorithm of 0.x, of a tensor's first row only
ADDRESSES = ("_TRAINCHECK_", "_ML_DAIKON_")  # prefixes of what 0.x added to an object

_MAX_DEPTH = 16
_INT64 = 2**63
_UINT64 = 2**64
_PRIMITIVES: Mapping[str, type] = {"bool": bool, "int": int, "str": str}
_DEVICES = ("cuda", "cpu", "mps", "meta", "xpu", "xla", "mtia", "hpu", "ipu", "vulkan", "maia")
_ITEMS = frozenset(("list", "set", "frozenset"))


def value(raw: Any, depth: int = 0) -> Json:
    """Return an argument or a result; 0.x writes a result that is a tuple as a list of values."""
    if isinstance(raw, list):
        if depth >= _MAX_DEPTH:
            return {"cut": "tuple"}
        return {"tuple": [value(item, depth + 1) for item in raw]}
    if not isinstance(raw, dict) or len(raw) != 1:
        return plain(raw)
    ((kind, payload),) = raw.items()
    return _typed(kind, payload)


def plain(raw: Any, depth: int = 0) -> Json:  # noqa: PLR0911  one case a type
    """Return a value that stands without its type, in a container or as an attribute.

    A null is None or a number that is not finite, and nobody knows which.
    """
    if raw is None:
        return {"cut": "null"}
    if isinstance(raw, float) and not math.isfinite(raw):
        return {"float": str(raw)}
    if isinstance(raw, int) and not -_INT64 <= raw < _INT64:
        return {"int": str(raw)}
    if not isinstance(raw, dict | list):
        scalar: Json = raw
        return scalar
    if depth >= _MAX_DEPTH:
        return {"cut": type(raw).__name__}
    if isinstance(raw, list):
        return [plain(item, depth + 1) for item in raw]
    return _object("dict", raw, depth + 1)


def is_whole(item: Json) -> bool:
    """Whether nothing is cut from a value."""
    if isinstance(item, list):
        return all(map(is_whole, item))
    if not isinstance(item, dict):
        return True
    ((kind, payload),) = item.items()
    if kind == "object":
        payload = list(payload.get("attributes", {}).values())
    return kind != "cut" and (not isinstance(payload, list) or is_whole(payload))


def tensor(fields: Mapping[str, Any]) -> Fields | None:
    """Return what the attributes of a tensor say of it; None if that is not enough."""
    shape, dtype = fields.get("shape"), fields.get("dtype")
    if not isinstance(shape, list) or not isinstance(dtype, str):
        return None
    if not all(type(size) is int and 0 <= size < _INT64 for size in shape):
        return None
    described: Fields = {"shape": shape, "dtype": dtype_name(dtype), "device": device_name(fields)}
    if fields.get("requires_grad") is True:
        described["requires_grad"] = True
    return described


def digest(number: int) -> str:
    """Return the hash of 0.x, a signed number of 64 bit, as a digest."""
    return f"{DIGEST}:{number % _UINT64:016x}"


def dtype_name(text: str) -> str:
    """Return a dtype without its prefix."""
    return text.removeprefix("torch.")


def device_name(fields: Mapping[str, Any]) -> str:
    """Return the type of the device that the attributes of a tensor tell; its index is not told."""
    return next((name for name in _DEVICES if fields.get(f"is_{name}") is True), "unknown")


def is_address(attribute: str) -> bool:
    """Whether an attribute was added by 0.x: an address, from which nothing follows."""
    return attribute.startswith(ADDRESSES)


def is_tensor_type(kind: str) -> bool:
    """Whether a type name of 0.x is one of torch's tensors."""
    return kind.startswith("torch.") and kind.endswith(("Tensor", ".Parameter"))


def _typed(kind: str, payload: Any) -> Json:  # noqa: PLR0911  one case a type
    if kind == "NoneType":
        return None
    if kind == "float":
        is_number = isinstance(payload, int | float) and not isinstance(payload, bool)
        return plain(payload) if is_number else {"cut": kind}
    if kind in _PRIMITIVES:
        return plain(payload) if type(payload) is _PRIMITIVES[kind] else {"cut": kind}
    if isinstance(payload, str) and kind == "torch.dtype":
        return {"dtype": dtype_name(payload)}
    if isinstance(payload, list):
        return _items(kind, payload)
    if kind in _ITEMS or kind == "tuple":
        return {"cut": kind}
    if not isinstance(payload, dict):
        return _object(kind, {} if payload is None else {"value": payload})
    if kind == "torch.device":
        return _device(payload)
    described = tensor(payload) if is_tensor_type(kind) else None
    return _object(kind, payload) if described is None else {"tensor": described}


def _items(kind: str, payload: list[Any]) -> Json:
    items = [plain(item) for item in payload]
    if kind == "list":
        return items
    if kind in _ITEMS:
        return {"set": items}
    if kind in ("tuple", "torch.Size"):
        return {"tuple": items}
    return {"object": {"type": kind}}


def _object(kind: str, payload: Mapping[str, Any], depth: int = 0) -> Json:
    """Return an object with the attributes that 0.x kept; a null among them is left out."""
    attributes = {
        name: plain(item, depth)
        for name, item in payload.items()
        if item is not None and not is_address(name)
    }
    return {"object": {"type": kind, **({"attributes": attributes} if attributes else {})}}


def _device(payload: Mapping[str, Any]) -> Json:
    kind, index = payload.get("type"), payload.get("index")
    if not isinstance(kind, str):
        return _object("torch.device", payload)
    return {"device": kind if index is None else f"{kind}:{index}"}
