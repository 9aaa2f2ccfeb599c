"""What stands before the work of a pass: guards that end the loop, or skip what is no pass."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from traincheck_instrument.source.script import DEFINITION, LOOP, Loop, Script
from traincheck_instrument.source.words import word_set, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_instrument.source.values import Meanings

_FINITE = word_set("finite inf infinite isfinite isinf isnan nan overflow")
_BUILTINS = frozenset(vars(builtins))
_IDLE_MODULES = word_set("datetime itertools logging math os random sys time")
_WORKING = word_set("backward forward manual_backward optimizer_step step train_step zero_grad")
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Pass)


def first_of_work(script: Script, meanings: Meanings, loop: Loop) -> ast.stmt | None:
    """Return the statement of a training loop's body at which a pass begins; None: the first.

    It comes after the last guard that can leave the pass before it has done anything: `if done:
    break`, or `try: batch = next(batches)` with a `break` where there is none.
    """
    idleness = _Idleness(script, meanings)
    start = 0
    for index, statement in enumerate(loop.body[:-1]):
        if not idleness.of(statement):
            break
        if leaves(statement):
            start = index + 1
    return loop.body[start] if start else None


def tests_finiteness(test: ast.expr) -> bool:
    """Whether a condition asks if numbers are sound: `if not torch.isfinite(loss)`."""
    names = (
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(test)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return any(not _FINITE.isdisjoint(words(name)) for name in names)


def leaves(
    statement: ast.stmt,
    how: tuple[type[ast.stmt], ...] = (ast.Continue, ast.Break, ast.Return),
) -> bool:
    """Whether a statement can leave the pass: to the next one, out of the loop or the function."""
    return any(isinstance(node, how) for node in _inside(statement))


class _Idleness:
    """Tells what does no work of training: counters, fetching data, guards."""

    def __init__(self, script: Script, meanings: Meanings) -> None:
        self._script = script
        self._meanings = meanings

    def of(self, statement: ast.stmt) -> bool:
        """Whether a statement does no work."""
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                return self._calls_nothing(test) and all(map(self._of_branch, (body, orelse)))
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                branches = [body, orelse, final, *(handler.body for handler in handlers)]
                return all(map(self._of_branch, branches))
            case ast.Break() | ast.Continue() | ast.Return(value=None):
                return True
        return isinstance(statement, _PLAIN) and self._calls_nothing(statement)

    def _of_branch(self, branch: Sequence[ast.stmt]) -> bool:
        """Whether a branch does no work; what ends the loop may do what is done at its end."""
        if branch and isinstance(branch[-1], ast.Break | ast.Return):
            return not any(_says_work(node) for one in branch for node in ast.walk(one))
        return all(map(self.of, branch))

    def _calls_nothing(self, node: ast.AST) -> bool:
        calls = (one for one in _inside(node) if isinstance(one, ast.Call))
        return all(map(self._is_idle, calls))

    def _is_idle(self, call: ast.Call) -> bool:
        if _says_work(call) or any(True for _ in self._meanings.callees(call)):
            return False
        func = call.func
        if isinstance(func, ast.Name):
            return func.id in _BUILTINS
        if not isinstance(func, ast.Attribute):
            return False
        root = (self._script.dotted(func) or "").partition(".")[0]
        is_of_module = root in {name.partition(".")[0] for name in self._script.imports.values()}
        is_own = isinstance(func.value, ast.Name) and func.value.id == "self"
        return root in _IDLE_MODULES or not (is_of_module or is_own)


def _says_work(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _WORKING
    )


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what stands in it, but not what stands in definitions and loops."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(
            child
            for child in ast.iter_child_nodes(one)
            if not isinstance(child, (*DEFINITION, *LOOP))
        )
