"""Properties: the facts about an occasion on which a precondition may depend.

Each namespace has one resolver and says what it needs recorded:

| property | is |
| --- | --- |
| `call.arg.<name>` | a primitive argument; of a tensor `.dtype`, `.ndim`, `.requires_grad` |
| `call.module.training` | the training flag of the module whose method is called |
| `call.module.type`, `call.module.name` | its type, and its name where it is tracked |
| `var.<attribute>` | a variable's state when the occasion begins |
| `ctx.<context>` | a context that was active: `ctx.grad_mode`, `ctx.autocast.dtype` |
| `run.stage`, `run.first_step` | where in the run |
| `run.first_micro_step` | of the batches whose gradients are added up, the first |
| `run.model` | tells one model from another: a digest of the names of all parameters |
| `rank.<group>` | how many ranks the group has |

Process ids, addresses, times and step numbers are no properties: they don't carry over to
another run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_relations.api import Call, Event, Requirements, VariableState
from traincheck_relations.value import is_comparable, payload, value_class
from traincheck_trace_schema.invariants import Params, function_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_trace_schema.values import Json, Scalar

_RECORDED = ("data", "grad", "requires_grad")  # other attributes are the program's own marks
FORWARD = "torch.nn.Module.forward"  # what the call of a module overrides
MODEL = "run.model"
_DEFAULT_CONTEXT: Mapping[str, Json] = {"grad_mode": True}


def run_properties(event: Event) -> dict[str, Scalar]:
    """Return the facts about where in the run an event lies, and how many ranks take part."""
    groups = {f"rank.{name}": len(ranks) for name, ranks in event.run.world().items()}
    model = event.run.model()
    return {
        "run.stage": event.stage,
        "run.first_step": event.window.step <= 0,
        "run.first_micro_step": not event.record.get("micro_step"),
        **({} if model is None else {MODEL: model}),
        **groups,
    }


def call_properties(call: Call) -> dict[str, Scalar]:
    """Return the facts about a call that were known when it began."""
    facts: dict[str, Scalar] = {}
    for name, value in (call.begin.get("args") or {}).items():
        facts.update(_argument(f"call.arg.{name}", value))
    facts.update(_module(payload(call.begin.get("self"), "object")))
    for name, value in {**_DEFAULT_CONTEXT, **(call.begin.get("ctx") or {})}.items():
        facts.update(_argument(f"ctx.{name}", value))
    return facts


def variable_properties(state: VariableState, call: Call | None = None) -> dict[str, Scalar]:
    """Return the facts about a variable, as they are before `call` does anything to it."""
    data = payload(state.attributes.get("data"), "tensor")
    facts: dict[str, Scalar] = {
        "var.name": state.names[0],
        "var.held": bool(state.holders),
        "var.tied": len(state.names) > 1,
    }
    if call is not None and (holder := optimizer_name(call)) is not None:
        facts["var.held_by_caller"] = holder in state.holders
    if "requires_grad" in state.attributes:
        facts["var.requires_grad"] = bool(state.attributes["requires_grad"])
    if is_comparable(state, "grad"):
        facts["var.grad"] = value_class(state.attributes["grad"])
    facts.update(
        (f"var.{name}", value)
        for name, value in state.attributes.items()
        if name not in _RECORDED and isinstance(value, bool | int | str)
    )
    if data:
        facts["var.ndim"] = len(data["shape"])
        facts["var.dtype"] = data["dtype"]
    return facts


def context_of_variable(
    about_run: Mapping[str, Scalar], state: VariableState, *judged: str
) -> dict[str, Scalar]:
    """Return the facts of an occasion that is about a variable, less those that are judged."""
    facts = {**about_run, **variable_properties(state)}
    for name in judged:
        facts.pop(name, None)
    return facts


def requirements_of(prop_name: str, params: Params) -> Requirements:
    """Say what must be recorded so that a property of an occasion of `params` is known."""
    functions = {name for param in params if (name := function_of(param)) is not None}
    namespace, _, rest = prop_name.partition(".")
    if namespace == "call" and rest.startswith("arg."):
        argument = rest.split(".")[1]
        return Requirements(functions={name: frozenset((argument,)) for name in functions})
    if prop_name == MODEL:
        return Requirements(variables={"parameter": frozenset(("requires_grad",))})
    if namespace == "ctx":
        return Requirements(contexts=frozenset((rest.split(".")[0],)))
    if namespace == "var":
        attributes = {"requires_grad": {"requires_grad"}, "grad": {"grad"}}.get(rest, {"data"})
        return Requirements(variables={"parameter": frozenset(attributes)})
    return Requirements()


def object_name(call: Call) -> str | None:
    """Return the name of the tracked object whose method is called, as "optimizer0"."""
    name = payload(call.begin.get("self"), "object").get("name")
    return name if isinstance(name, str) else None


def optimizer_name(call: Call) -> str | None:
    """Return the name of the optimizer, scaler or scheduler whose method is called."""
    owner = payload(call.begin.get("self"), "object")
    return None if dict(_module(owner)) else object_name(call)


def module_name(call: Call) -> str | None:
    """Return the name of the part of a tracked model whose method is called."""
    return None if optimizer_name(call) is not None else object_name(call)


def is_in_tracked(call: Call) -> bool:
    """Whether a call was made in a call of a tracked module, at any depth."""
    return any(FORWARD in one.names and object_name(one) for one in call.around())


def _module(owner: Mapping[str, Any]) -> Iterator[tuple[str, Scalar]]:
    """Yield what is told of the owner of a method if it is a module, which has a training flag."""
    training = owner.get("attributes", {}).get("training")
    if not isinstance(training, bool):
        return
    yield "call.module.training", training
    yield "call.module.type", owner["type"]
    if (name := owner.get("name")) is not None:
        yield "call.module.name", name


def _argument(name: str, value: Json) -> Iterator[tuple[str, Scalar]]:
    if value is None or isinstance(value, str | bool | int):
        yield name, value
    elif tensor := payload(value, "tensor"):
        yield f"{name}.dtype", tensor["dtype"]
        if tensor["shape"] is not None:
            yield f"{name}.ndim", len(tensor["shape"])
        yield f"{name}.requires_grad", bool(tensor.get("requires_grad", False))
    elif isinstance(value, dict) and isinstance(value.get("dtype"), str):
        yield name, value["dtype"]
