"""What a trace says of an attribute's value, and how two of them compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_relations.api import VariableState
    from traincheck_trace_schema.values import Json


def payload(value: Any, key: str) -> Mapping[str, Any]:
    """Return what a one-key object holds under `key`, or nothing."""
    # What JSON gives are dictionaries; to ask for any mapping takes ten times as long.
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def content(state: VariableState, attribute: str) -> Json:
    """Return what an attribute is compared by: a tensor's digest or data, else the value."""
    return _content(state.attributes[attribute])


def is_comparable(state: VariableState, attribute: str) -> bool:
    """Whether the trace says enough of an attribute to tell it from another value."""
    if attribute not in state.attributes:
        return False
    value = state.attributes[attribute]
    return value is None or _content(value) is not None


def has_changed(before: VariableState, after: VariableState, attribute: str) -> bool:
    """Whether an attribute that is comparable in both states differs."""
    old, new = before.attributes[attribute], after.attributes[attribute]
    return old is not new and _content(old) != _content(new)


def is_finite(state: VariableState, attribute: str) -> bool:
    """Whether a tensor has only finite elements, as far as the trace tells."""
    return payload(state.attributes.get(attribute), "tensor").get("finite") is not False


def value_class(value: Json) -> str:
    """Return what is said of a value in preconditions: "none", "zero" or "non_zero"."""
    if value is None:
        return "none"
    tensor = payload(value, "tensor")
    if tensor:
        return "zero" if tensor.get("zero") else "non_zero"
    return "non_zero" if value else "zero"


def _content(value: Json) -> Json:
    tensor = payload(value, "tensor")
    if not tensor:
        return value
    digest: Json = tensor.get("digest")
    return digest if digest is not None else tensor.get("data")
