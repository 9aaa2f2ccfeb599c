"""`APIContainRelation`: a call always contains a call, or a change of variables.

"Contains" means at any depth. A change of variables comes in two quantifiers. `each`: one occasion
for a call and a variable; it finds the one layer that was left behind. `some`: one occasion for a
call; it finds the call after which nothing has changed.

Some occasions say nothing, and give no example: `change.py` has the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import Monitor, Proposer, Requirements
from traincheck_relations.containment.contain_candidates import ContainProposer
from traincheck_relations.containment.contain_monitor import ContainMonitor, parts_of
from traincheck_relations.variables.change import in_words
from traincheck_relations.variables.holding import TOLERANCE
from traincheck_trace_schema.invariants import APIParam, Params

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_CALL_MISSING = (
    "whether a setting, a condition or an early return skips {child} in {parent}; "
    "whether another function stands in its place: one that is fused, patched or overridden"
)
_NOTHING_CHANGED: Mapping[tuple[str, str], str] = {
    ("step", "data"): (
        "whether the optimizer was made over parameters that are frozen (requires_grad False) or "
        "that the model no longer uses; whether anything gives them a gradient; whether the "
        "learning rate is zero; whether a gradient scaler skips the steps"
    ),
    ("backward", "grad"): (
        "whether the whole model is frozen (requires_grad False), as an adapter that was loaded "
        "for inference; where the graph from the loss to it is cut: detach, no_grad, .item(), a "
        "tensor made anew; whether the loss is that of another model"
    ),
}
# By the method and the attribute that it should have changed.
_CHANGE_MISSING: Mapping[tuple[str, str], str] = {
    ("step", "data"): (
        "whether these parameters are frozen (requires_grad False), or in a group whose learning "
        "rate is zero; whether their update is lost: rounded away in 16 bits, where an update may "
        "be smaller than the distance to the next number, or written into a copy by a fused or "
        "device kernel; whether the optimizer holds others than the model uses, made before it "
        "was replaced, moved or wrapped"
    ),
    ("backward", "grad"): (
        "where the graph from the loss to these parameters is cut: detach, no_grad, .item(), a "
        "tensor made anew, a reentrant checkpoint whose inputs require no gradient; whether they "
        "are frozen (requires_grad False), or were replaced since the model was built; whether "
        "they take part in this loss at all"
    ),
    ("zero_grad", "grad"): (
        "whether the optimizer holds the parameters that the model trains (a gradient that is "
        "never cleared adds up over the steps); whether any gradient reached them"
    ),
}
_OTHER_CHANGE = (
    "whether {function} reaches these variables: it may be given others, under other names, or "
    "copies; whether a setting, a condition or an early return skips what it should do"
)


class APIContainRelation:
    """A call of P always contains a call of Q, or a change of an attribute of variables."""

    name: ClassVar[str] = "APIContainRelation"
    group: ClassVar[str] = "parent_func_call_pre"
    looks_at_arguments: ClassVar[bool] = True

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ContainProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        parent, child = parts_of(params)
        if isinstance(child, APIParam):
            return Requirements(
                functions={
                    parent.api_full_name: frozenset(),
                    child.api_full_name: frozenset(child.arguments),
                }
            )
        variables = {"parameter": frozenset((child.attr_name,))}
        if child.attr_name == "data":
            variables = {
                "parameter": frozenset(("data", "grad")),
                "optimizer": frozenset(("lr", TOLERANCE)),
            }
        return Requirements(
            functions={parent.api_full_name: frozenset()},
            variables=variables,
            observe=frozenset((parent.api_full_name,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return ContainMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        parent, child = parts_of(params)
        if isinstance(child, APIParam):
            asked = f" with the given {', '.join(child.arguments)}" if child.arguments else ""
            return f"Each call of {parent.api_full_name} calls {child.api_full_name}{asked}"
        which = "each" if child.quantifier == "each" else "at least one"
        whose = " that it holds" if parent.api_full_name.startswith("torch.optim.") else ""
        change = f"the {child.attr_name} of {which} {child.var_type}{whose}"
        if child.pre_value != "anything" or child.post_value != "anything":
            change += f" from {in_words(child.pre_value)} to {in_words(child.post_value)}"
        return f"Each call of {parent.api_full_name} changes {change}"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        parent, child = parts_of(params)
        if isinstance(child, APIParam):
            return _CALL_MISSING.format(parent=parent.api_full_name, child=child.api_full_name)
        method = parent.api_full_name.rpartition(".")[2]
        key = method, child.attr_name
        if child.quantifier == "some" and key in _NOTHING_CHANGED:
            return _NOTHING_CHANGED[key]
        return _CHANGE_MISSING.get(key, _OTHER_CHANGE).format(function=parent.api_full_name)

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _, child = parts_of(params)
        return 0.6 if isinstance(child, APIParam) else 0.9
