"""What a trace tells of the values that a call is given and returns.

A path leads into a value: of a tensor `("dtype",)`, `("ndim",)`, `("requires_grad",)`,
`("shape",)`, `("shape", 0)`, `("finite",)`, `("facts", "has_zero_row")`, and `("value",)` if it has
a single element; of an object the name of an attribute. What is not told is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from traincheck_relations.value import payload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_relations.api import Call, RawRecord
    from traincheck_trace_schema.invariants import InputOutputParam
    from traincheck_trace_schema.values import Json, Scalar

    Path: TypeAlias = Sequence[Scalar]

EVALUATES = frozenset(("evaluation", "testing", "inference"))  # stages in which nothing learns
ALL_ARGUMENTS = "*"  # as the name of an argument that is needed
INPUTS, OUTPUTS = "input_tensors", "output_tensors"
_CONTEXT = "ctx."


def arguments_of(call: Call) -> Mapping[str, Json]:
    """Return the arguments of a call that were recorded, by name."""
    return call.begin.get("args") or {}


def argument_of(call: Call, name: str) -> Json:
    """Return an argument of a call, or its default if it is left out; None if it is not told."""
    given = arguments_of(call)
    found: Json = given[name] if name in given else call.defaults.get(name)
    return found


def has_gradients(call: Call) -> bool:
    """Whether gradients were enabled when a call began."""
    contexts: Mapping[str, Json] = call.begin.get("ctx") or {}
    return contexts.get("grad_mode") is not False and not contexts.get("inference_mode")


def tensors_in(value: Json) -> Iterator[Mapping[str, Any]]:
    """Yield the tensors in a value: itself, or what stands in lists, tuples and dicts."""
    if tensor := payload(value, "tensor"):
        yield tensor
    elif isinstance(value, list):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for items in value.values():
            if isinstance(items, list):
                yield from tensors_in(items)


def part_of(value: Json, path: Path | None) -> Json:
    """Follow a path into a value; None if it leads nowhere, or to what is not told."""
    if not path:
        return value
    if tensor := payload(value, "tensor"):
        return _part_of_tensor(tensor, path)
    attributes = payload(value, "object").get("attributes", {})
    found: Json = attributes.get(path[0]) if len(path) == 1 else None
    return found


def value_of(param: InputOutputParam, call: Call, end: RawRecord) -> Json:
    """Return what a param names, of a call that ended; None if it is not told."""
    return part_of(_whole(param, call, end), param.additional_path)


def is_loss(call: Call, end: RawRecord) -> bool:
    """Whether a call reduces batches to one number, as losses do."""
    result = payload(end.get("result"), "tensor")
    if not result or result["shape"] != [] or "float" not in result["dtype"]:
        return False
    given = [payload(value, "tensor") for value in arguments_of(call).values()]
    return sum(bool(tensor and tensor["shape"]) for tensor in given) > 1


def _whole(param: InputOutputParam, call: Call, end: RawRecord) -> Json:
    if not param.is_input:
        result: Json = end.get("result")
        return result if param.index is None else _nth_tensor(result, param.index)
    if param.name == "self":
        found: Json = call.begin.get("self")
        return found
    if param.name.startswith(_CONTEXT):
        contexts: Mapping[str, Json] = call.begin.get("ctx") or {}
        return contexts.get(param.name.removeprefix(_CONTEXT))
    if param.name == INPUTS:
        return _nth_tensor(list(arguments_of(call).values()), param.index or 0)
    return argument_of(call, param.name)


def _nth_tensor(value: Json, index: int | None) -> Json:
    for at, tensor in enumerate(tensors_in(value)):
        if at == index:
            return {"tensor": dict(tensor)}
    return None


def _part_of_tensor(tensor: Mapping[str, Any], path: Path) -> Json:
    name, rest = path[0], path[1:]
    found: Json = None
    if name == "requires_grad":
        found = bool(tensor.get("requires_grad", False))
    elif name == "facts" and rest:
        found = (tensor.get("facts") or {}).get(rest[0])
    elif name == "value":
        data = tensor.get("data")
        found = data[0] if isinstance(data, list) and len(data) == 1 else None
    elif name == "ndim":
        found = None if tensor["shape"] is None else len(tensor["shape"])
    elif name == "shape" and rest:
        shape, at = tensor["shape"], rest[0]
        is_there = isinstance(at, int) and shape is not None and -len(shape) <= at < len(shape)
        found = shape[at] if is_there else None
    elif name in {"dtype", "shape", "device", "finite"}:
        found = tensor.get(str(name))
    return found
