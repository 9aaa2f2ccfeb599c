"""How surely something happens each time a stretch of the script runs: always, sometimes, never."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from traincheck_instrument.source.guards import leaves, tests_finiteness
from traincheck_instrument.source.values import registers_hook

if TYPE_CHECKING:
    from traincheck_instrument.source.script import Function, Loop
    from traincheck_instrument.source.values import Meanings


class Certainty(enum.IntEnum):
    """How often, in the runs of a piece of code, something happens."""

    NEVER = 0
    SOMETIMES = 1
    ALWAYS = 2


Event: TypeAlias = Callable[[ast.Call], bool]


class Occurrences:
    """Where in a script the calls of one kind happen, also through functions of the script.

    What happens in a loop inside belongs to that loop, except where the loop goes over the very
    objects that are called (`for optimizer in optimizers: optimizer.step()`).
    """

    def __init__(
        self, meanings: Meanings, event: Event, *, guarded_after: Occurrences | None = None
    ) -> None:
        """Look for calls for which `event` is true.

        Args:
            meanings: What the script's names stand for.
            event: Whether a call is one of them.
            guarded_after: After one of these, a conditional `continue` or `return` makes what
                follows conditional: `loss.backward(); if i % 4: continue; optimizer.step()`.
        """
        self._meanings = meanings
        self._event = event
        self._guarded_after = guarded_after
        self._known: dict[Function, Certainty] = {}

    def in_iteration(self, loop: Loop) -> Certainty:
        """Say how surely it happens in one iteration of a loop."""
        test = self._expression(loop.test) if isinstance(loop, ast.While) else Certainty.NEVER
        return max(test, self._block(loop.body))

    def in_function(self, function: Function) -> Certainty:
        """Say how surely it happens in a call of a function, loops inside left out."""
        if function not in self._known:
            self._known[function] = Certainty.NEVER  # holds while a recursive call is looked into
            self._known[function] = self._block(function.body)
        return self._known[function]

    def _block(self, statements: Sequence[ast.stmt]) -> Certainty:
        result, limit, is_due = Certainty.NEVER, Certainty.ALWAYS, False
        for statement in statements:
            result = max(result, min(self._statement(statement), limit))
            if self._guarded_after:
                if is_due and _skips(statement):
                    limit = Certainty.SOMETIMES
                is_due |= self._guarded_after._statement(statement) > Certainty.NEVER  # noqa: SLF001  its own class
        return result

    def _statement(self, statement: ast.stmt) -> Certainty:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                branches = [body] if tests_finiteness(test) and not orelse else [body, orelse]
                found = [self._expression(test), self._branches(branches)]
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                limit = Certainty.SOMETIMES if _accumulates(items) else Certainty.ALWAYS
                found = [self._expression(item.context_expr) for item in items]
                found.append(min(self._block(body), limit))
            case ast.Try(body=body, orelse=orelse, finalbody=final, handlers=handlers):
                found = [min(self._block(one.body), Certainty.SOMETIMES) for one in handlers]
                found += map(self._block, (body, orelse, final))
            case ast.Match(subject=subject, cases=cases):
                is_complete = cases[-1].guard is None and _matches_all(cases[-1].pattern)
                branches = [case.body for case in cases] + ([] if is_complete else [[]])
                found = [self._expression(subject), self._branches(branches)]
            case ast.For() | ast.AsyncFor():
                body = statement.body if self.is_over_receivers(statement) else []
                found = [self._expression(statement.iter)]
                found += map(self._block, (body, statement.orelse))
            case ast.While(orelse=orelse):
                found = [self._block(orelse)]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found = []
            case _:
                found = [self._expression(node) for node in ast.iter_child_nodes(statement)]
        return max(found, default=Certainty.NEVER)

    def _branches(self, branches: Sequence[Sequence[ast.stmt]]) -> Certainty:
        return _of_branches([self._block(branch) for branch in branches])

    def _expression(self, node: ast.AST) -> Certainty:
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                branches = [self._expression(body), self._expression(orelse)]
                return max(self._expression(test), _of_branches(branches))
            case ast.BoolOp(values=[first, *rest]):
                later = max(map(self._expression, rest))
                return max(self._expression(first), min(later, Certainty.SOMETIMES))
            case ast.Call() if registers_hook(node):
                return self._expression(node.func)
        inside = [self._expression(child) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Call):
            inside.append(self._call(node))
        return max(inside, default=Certainty.NEVER)

    def _call(self, call: ast.Call) -> Certainty:
        if self._event(call):
            return Certainty.ALWAYS
        callees = map(self.in_function, self._meanings.callees(call))
        return max(callees, default=Certainty.NEVER)

    def is_over_receivers(self, loop: Loop) -> bool:
        """Whether a loop goes over the very objects that are called, and does no more."""
        if isinstance(loop, ast.While):
            return False
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
        is_over = any(self._event(call) and _root(call.func) in names for call in calls)
        return is_over and not any(
            self._guarded_after and self._guarded_after._event(call)  # noqa: SLF001  its own class
            for call in calls
        )


def _of_branches(branches: Sequence[Certainty]) -> Certainty:
    if min(branches) == Certainty.ALWAYS:
        return Certainty.ALWAYS
    return min(max(branches), Certainty.SOMETIMES)


def _accumulates(items: Sequence[ast.withitem]) -> bool:
    """Whether accelerate decides inside which step is made: `accelerator.accumulate(...)`."""
    return any(
        isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr == "accumulate"
        for item in items
    )


def _skips(statement: ast.stmt) -> bool:
    """Whether a branch may go on to the next pass, other than to give up one gone wrong."""
    return (
        isinstance(statement, ast.If)
        and leaves(statement, (ast.Continue, ast.Return))
        and not tests_finiteness(statement.test)
    )


def _matches_all(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
