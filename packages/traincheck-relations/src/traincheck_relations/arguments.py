"""Whether a call may have the arguments that a param asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traincheck_relations.value import payload

if TYPE_CHECKING:
    from traincheck_relations.api import Call
    from traincheck_trace_schema.values import Json

_TENSOR = "torch.Tensor"
_PARTLY_TOLD = ("cut", "text")  # values that a trace leaves out, in part or as a whole


def may_have(call: Call, arguments: Mapping[str, Json]) -> bool:
    """Whether nothing that is recorded of a call says that an argument is another.

    What is not recorded, or under its position only, says nothing.
    """
    given = dict(call.begin.get("args") or {})
    if (owner := call.begin.get("self")) is not None:
        given["self"] = owner
    return all(_may_be(given[name], asked) for name, asked in arguments.items() if name in given)


def _may_be(given: Any, asked: Json) -> bool:
    if isinstance(given, Mapping) and any(key in given for key in _PARTLY_TOLD):
        return True
    if not (wanted := payload(asked, "object")):
        return type(given) is type(asked) and bool(given == asked)
    attributes: Mapping[str, Json] = wanted.get("attributes", {})
    if wanted.get("type") == _TENSOR and (tensor := payload(given, "tensor")):
        told: Mapping[str, Any] = {
            **tensor,
            "dtype": {"dtype": tensor["dtype"]},
            "ndim": len(tensor["shape"]),
            "requires_grad": tensor.get("requires_grad", False),
        }
    elif (found := payload(given, "object")) and found.get("type") == wanted.get("type"):
        told = found.get("attributes", {})
    else:
        return False
    return all(told[name] == item for name, item in attributes.items() if name in told)
