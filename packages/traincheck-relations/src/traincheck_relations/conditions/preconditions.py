"""Preconditions: whether one holds in a context, and how it reads in English."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from traincheck_relations.conditions.properties import MODEL
from traincheck_trace_schema.errors import InvariantError
from traincheck_trace_schema.invariants import Clause, ConditionGroup, Conjunction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincheck_relations.api import Context, Relation
    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.values import Scalar

UNCONDITIONAL = Conjunction(clauses="Unconditional")
ALWAYS = ConditionGroup(preconditions=(UNCONDITIONAL,))

Test: TypeAlias = "Callable[[Context], bool]"

_PHRASES: Mapping[tuple[str, Scalar], str] = {
    ("var.held_by_caller", True): "the variable is held by the optimizer that is called",
    ("var.held_by_caller", False): "the variable is not held by the optimizer that is called",
    ("var.held", True): "the variable is held by an optimizer",
    ("var.held", False): "the variable is held by no optimizer",
    ("var.tied", True): "the variable has more than one name",
    ("var.tied", False): "the variable has one name only",
    ("var.requires_grad", True): "the variable requires a gradient",
    ("var.requires_grad", False): "the variable requires no gradient",
    ("var.grad", "none"): "the variable has no gradient",
    ("var.grad", "zero"): "the gradient of the variable is zero",
    ("var.grad", "non_zero"): "the variable has a gradient that is not zero",
    ("call.module.training", True): "the module is in training mode",
    ("call.module.training", False): "the module is in evaluation mode",
    ("ctx.grad_mode", True): "gradients are enabled",
    ("ctx.grad_mode", False): "gradients are disabled",
    ("run.first_step", True): "it is not later than the first step",
    ("run.first_step", False): "the first step is over",
    ("run.first_micro_step", True): "it is the first of the batches whose gradients are added up",
    ("run.first_micro_step", False): "gradients are added to those of an earlier batch",
    ("ctx.inference_mode", True): "inference mode is on",
    ("module.held", True): "the parameters of its module are held by an optimizer",
    ("module.held", False): "the parameters of its module are held by no optimizer",
    ("module.requires_grad", True): "the parameters of its module require a gradient",
    ("module.requires_grad", False): "the parameters of its module require no gradient",
}
_FACTS: Mapping[str, str] = {
    "ndim": "number of dimensions",
    "requires_grad": "flag requires_grad",
}
_KINDS: Mapping[str, str] = {
    "call.arg.": "the argument {}",
    "call.module.": "the {} of the module",
    "var.": "the {} of the variable",
    "ctx.": "the context {}",
    "run.": "the {} of the run",
    "rank.": "the number of ranks in the group {}",
}


def value_key(value: Scalar) -> tuple[bool, Scalar]:
    """Return what tells values apart: `True` is not 1, though Python takes them for equal."""
    return isinstance(value, bool), value


def compile_group(group: ConditionGroup) -> Test:
    """Return a function that says whether a precondition holds in a context.

    Raises:
        InvariantError: A clause is about several records, which no context can answer.
    """
    if not group.inverted and UNCONDITIONAL in group.preconditions:
        return always
    conjunctions = tuple(_compile_conjunction(each) for each in group.preconditions)
    expected = not group.inverted

    def test(context: Context) -> bool:
        for clauses in conjunctions:
            if all(clause(context) for clause in clauses):
                return expected
        return not expected

    return test


def always(context: Context) -> bool:
    """Say that a precondition holds, whatever the context."""
    del context
    return True


def holds(group: ConditionGroup, context: Context) -> bool:
    """Say whether a precondition holds in a context; to ask often, use `compile_group`."""
    return compile_group(group)(context)


def condition_of(invariant: Invariant, relation: Relation) -> ConditionGroup:
    """Return the precondition of an invariant; where its file gives none, it always applies.

    Raises:
        InvariantError: The invariant has a group that its relation does not know.
    """
    unknown = invariant.precondition.keys() - {relation.group}
    if unknown:
        raise InvariantError(
            f"Invariant {invariant.id}: precondition group {min(unknown)!r} is not understood, "
            f"{invariant.relation} has {relation.group!r}; infer the invariants again"
        )
    return invariant.precondition.get(relation.group, ALWAYS)


def in_words(group: ConditionGroup) -> str:
    """Put a precondition in words that follow a claim; empty if it always applies.

    >>> clause = Clause(type="constant", prop_name="var.held", values=(True,))
    >>> in_words(ConditionGroup(preconditions=(Conjunction(clauses=(clause,)),)))
    'when the variable is held by an optimizer'
    """
    alternatives = [
        " and ".join(map(_clause_in_words, each.clauses))
        for each in group.preconditions
        if each.clauses != "Unconditional"
    ]
    if len(alternatives) < len(group.preconditions):
        return "never" if group.inverted else ""
    return f"{'except when' if group.inverted else 'when'} {', or '.join(alternatives)}"


def _compile_conjunction(conjunction: Conjunction) -> tuple[Test, ...]:
    if conjunction.clauses == "Unconditional":
        return ()
    return tuple(map(_compile_clause, conjunction.clauses))


def _compile_clause(clause: Clause) -> Test:
    name = clause.prop_name
    if clause.type == "exist":
        return lambda context: name in context
    if clause.type == "constant":
        allowed = frozenset(map(value_key, clause.values))
        return lambda context: name in context and value_key(context[name]) in allowed
    raise InvariantError(
        f"Precondition clause of type {clause.type!r} on {name!r} is about several records, which "
        f"this version does not evaluate; infer the invariants again or remove that one"
    )


def _clause_in_words(clause: Clause) -> str:
    if clause.type == "exist":
        return f"{_subject(clause.prop_name)} is known"
    if clause.prop_name == MODEL:
        return "it is the same model, by the names of its parameters"
    phrases = [_PHRASES.get((clause.prop_name, value), "") for value in clause.values]
    if phrases and all(phrases):
        return " or ".join(phrases)
    return f"{_subject(clause.prop_name)} is {' or '.join(map(_shown, clause.values))}"


def _subject(prop_name: str) -> str:
    of_argument, _, fact = prop_name.removeprefix("call.arg.").partition(".")
    if fact and prop_name.startswith("call.arg."):
        return f"the {_FACTS.get(fact, fact)} of the argument {of_argument}"
    if prop_name.startswith("var.") and (words := _FACTS.get(prop_name.removeprefix("var."))):
        return f"the {words} of the variable"
    for prefix, phrase in _KINDS.items():
        if prop_name.startswith(prefix):
            return phrase.format(prop_name.removeprefix(prefix))
    return prop_name


def _shown(value: Scalar) -> str:
    return value if isinstance(value, str) else repr(value)
