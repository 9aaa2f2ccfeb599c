"""All that there is to tell of an invariant, in words, with a label each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from traincheck_relations.managing.claims import claim_in_words, condition_in_words
from traincheck_relations.planning import plan_for
from traincheck_relations.registry import load_relations, not_checkable
from traincheck_trace_schema.codec import dumps, unstructure
from traincheck_trace_schema.errors import ConfigError, PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_trace_schema.invariants import Invariant, Param
    from traincheck_trace_schema.plan import FunctionPlan, Plan
    from traincheck_trace_schema.suppressions import Suppression


def facts(invariant: Invariant, suppression: Suppression | None) -> Mapping[str, str]:
    """Return what there is to tell of an invariant, by labels."""
    likelihood = invariant.likelihood
    told = {
        "claim": claim_in_words(invariant),
        "holds": condition_in_words(invariant) or "always",
        "relation": invariant.relation,
        "params": "; ".join(map(_param, invariant.params)) or "none",
        "held on": _occasions(invariant),
        "runs": f"{len(invariant.runs)}: {', '.join(invariant.runs)}" if invariant.runs else "",
        "held first": _first(invariant),
        "tracker": invariant.tracker or "",
        "likelihood": "" if likelihood is None else f"{likelihood:g} that a breach is a bug",
        "needs": "; ".join(_needs(invariant)),
        "suppressed": f"{suppression.reason} (by {suppression.pattern!r})" if suppression else "",
    }
    return {label: text for label, text in told.items() if text}


def _param(param: Param) -> str:
    """Write a param with what it says beyond its defaults."""
    names = {field.name for field in attrs.fields(type(param))}
    fields = (
        f"{name}={value if isinstance(value, str) else dumps(value)}"
        for name, value in unstructure(param).items()
        if name in names
    )
    return f"{param.param_type}({', '.join(fields)})"


def _occasions(invariant: Invariant) -> str:
    held, not_held = invariant.num_positive_examples, invariant.num_negative_examples
    if held is None:
        return ""
    excluded = f"; {not_held:,} on which it did not are excluded" if not_held else ""
    return f"{held:,} occasion{'' if held == 1 else 's'}{excluded}"


def _first(invariant: Invariant) -> str:
    reference = invariant.reference
    if reference is None:
        return ""
    source = "" if reference.at.source is None else f", at {reference.at.source}"
    return f"in run {reference.run}, {reference.at.when}, rank {reference.at.rank}{source}"


def _needs(invariant: Invariant) -> Iterator[str]:
    """Yield what must be recorded to check it, or why nobody can tell."""
    try:
        relations = load_relations(only=[invariant.relation])
    except (ConfigError, PluginError) as error:
        yield f"can't be told: {error}"
        return
    reasons = not_checkable([invariant], relations)
    if reasons:
        yield f"can't be told: {reasons[invariant.id]}"
        return
    yield from _parts(plan_for([invariant], relations))


def _parts(plan: Plan) -> Iterator[str]:
    if plan.functions:
        yield f"calls of {', '.join(map(_function, plan.functions))}"
    for each in plan.variables:
        yield f"of each {each.role}: {', '.join(each.attributes)}"
    for where, functions in (
        ("around", plan.observe),
        ("before", plan.observe_before),
        ("after", plan.observe_after),
    ):
        if functions:
            yield f"the variables {where} {', '.join(functions)}"
    if plan.contexts:
        yield f"the contexts {', '.join(plan.contexts)}"


def _function(function: FunctionPlan) -> str:
    arguments = function.arguments
    told = "all arguments" if arguments == "all" else ""
    if arguments and not told:
        told = f"argument{'s' if len(arguments) > 1 else ''} {', '.join(arguments)}"
    parts = [told, "result" if function.result else ""]
    more = " and ".join(filter(None, parts))
    return f"{function.name} ({more})" if more else function.name
