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
    if _is_partly_told(given):
        return True
    if not (wanted := payload(asked, "object")):
        return _may_equal(given, asked)
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
    return all(_may_be(told[name], item) for name, item in attributes.items() if name in told)


def _may_equal(given: Any, asked: Any) -> bool:
    """Compare what is no object; what stands in a container may be cut, and its end left out."""
    if type(given) is not type(asked):
        return False
    if isinstance(given, list):
        told = given[:-1] if given and _is_rest(given[-1]) else given
        is_as_long = len(told) < len(given) or len(told) == len(asked)
        return is_as_long and all(map(_may_be, told, asked))
    if isinstance(given, Mapping):
        return given.keys() == asked.keys() and all(
            _may_be(item, asked[key]) for key, item in given.items()
        )
    return bool(given == asked)


def _is_rest(item: Any) -> bool:
    """Whether the last item of a list, or the last pair of a dict, stands for more of them."""
    return _is_partly_told(item[0] if isinstance(item, list) and item else item)


def _is_partly_told(value: Any) -> bool:
    return isinstance(value, Mapping) and any(key in value for key in _PARTLY_TOLD)
