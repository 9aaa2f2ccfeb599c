"""Finds the training loops: the innermost ones that hold an optimizer step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from traincheck_instrument.source.occurrences import Certainty, Occurrences
from traincheck_instrument.source.script import LOOP, Function, Loop, Script
from traincheck_instrument.source.values import Instance, Meanings
from traincheck_instrument.source.words import STEPPING, Role, role_of_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_BACKWARD = frozenset({"backward", "manual_backward"})


class Reach:
    """Which loops run while a loop, or a function, runs."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings
        self._known: dict[Function, frozenset[Loop]] = {}

    def inside(self, node: ast.AST) -> frozenset[Loop]:
        """Return the loops below a node, and those in the functions that it calls."""
        found: set[Loop] = set()
        for child in ast.walk(node):
            if isinstance(child, LOOP) and child is not node:
                found.add(child)
            elif isinstance(child, ast.Call):
                for function in self._meanings.callees(child):
                    found |= self._of(function)
        return frozenset(found)

    def _of(self, function: Function) -> frozenset[Loop]:
        if function not in self._known:
            self._known[function] = frozenset()  # holds while a recursive call is looked into
            self._known[function] = self.inside(function)
        return self._known[function]


def training_loops(
    script: Script, meanings: Meanings, reach: Reach, *, backward_counts: bool = True
) -> Mapping[Loop, bool]:
    """Return the training loops, each with whether its optimizer steps stand under a condition.

    Args:
        script: The script.
        meanings: What its names stand for.
        reach: Which loops run while another does.
        backward_counts: Where no optimizer steps, a loop that goes backward is a training loop.
    """
    backward = Occurrences(meanings, _is_backward)
    steps = Occurrences(meanings, _Steps(meanings).is_step, guarded_after=backward)
    guesses = Occurrences(meanings, _Steps(meanings).may_be_step, guarded_after=backward)
    loops = [loop for loop in script.loops() if not steps.is_over_receivers(loop)]
    certainty = {loop: steps.in_iteration(loop) for loop in loops}
    for loop, known in certainty.items():
        if known == Certainty.NEVER and _holds(backward, loop, reach):
            certainty[loop] = guesses.in_iteration(loop)
    if backward_counts and not any(certainty.values()):
        certainty = dict.fromkeys(certainty, Certainty.NEVER) | {
            loop: Certainty.ALWAYS for loop in certainty if backward.in_iteration(loop)
        }
    holding = {loop for loop, known in certainty.items() if known > Certainty.NEVER}
    return {
        loop: certainty[loop] == Certainty.SOMETIMES
        for loop in certainty
        if loop in holding and holding.isdisjoint(reach.inside(loop) - {loop})
    }


def _holds(backward: Occurrences, loop: Loop, reach: Reach) -> bool:
    """Whether backward happens in a loop, or in one inside it (accumulation)."""
    return any(backward.in_iteration(one) for one in (loop, *reach.inside(loop)))


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _BACKWARD


class _Steps:
    """Tells the steps of optimizers from those of schedulers, profilers and environments."""

    def __init__(self, meanings: Meanings) -> None:
        self._meanings = meanings

    def is_step(self, call: ast.Call) -> bool:
        """Whether a call is known to be an optimizer step."""
        func = call.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if name != "step":
            is_step = name.endswith("optimizer_step")  # as torch_xla's
            return is_step and not any(True for _ in self._meanings.callees(call))
        if not isinstance(func, ast.Attribute):
            return False
        roles = self._roles(func.value)
        if roles:
            return not STEPPING.isdisjoint(roles)
        return any(Role.OPTIMIZER in self._roles(argument) for argument in call.args)

    def may_be_step(self, call: ast.Call) -> bool:
        """Whether a call is a `step()` of an object of which nothing is known."""
        func = call.func
        return (
            isinstance(func, ast.Attribute)
            and func.attr == "step"
            and not self._roles(func.value)
            and not any(True for _ in self._meanings.callees(call))
        )

    def _roles(self, receiver: ast.expr) -> frozenset[Role]:
        """Return what a receiver is, by what is assigned to it, else by its name."""
        values = self._meanings.of(receiver)
        roles = {value for value in values if isinstance(value, Role)}
        if roles:
            return frozenset(roles)
        guess = role_of_name(_last_name(receiver))
        if any(isinstance(value, Instance) for value in values) and guess is not Role.OPTIMIZER:
            return frozenset({Role.OTHER})
        return frozenset({guess} if guess else ())


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return _last_name(inner)
    return ""
