"""Finds the evaluation loops: those that call a model where nothing is trained."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.source.asking import Asking
from traincheck_instrument.source.script import (
    FUNCTION,
    LOOP,
    Loop,
    Script,
    is_method,
    own_nodes,
)
from traincheck_instrument.source.words import says_environment, says_evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_instrument.source.training import Reach
    from traincheck_instrument.source.values import Meanings

_GRADIENT_FREE = ("no_grad", "inference_mode")
# Where a function hands control to its caller, whose stage is another.
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_NEVER_EVALUATE = frozenset({"__init__", "forward", "step"})


def evaluation_loops(
    script: Script,
    meanings: Meanings,
    reach: Reach,
    training: frozenset[Loop],
    *,
    trusts_names: bool = True,
) -> frozenset[Loop]:
    """Return the evaluation loops; of nested ones the outermost that itself asks a model.

    Args:
        script: The script.
        meanings: What its names stand for.
        reach: Which loops run while another does.
        training: Its training loops.
        trusts_names: The name of a function is enough to say that it evaluates.
    """
    asking = Asking(script, meanings)
    found: set[Loop] = set()
    for loop in script.loops():  # outer loops come before inner ones
        trains = loop in training or not training.isdisjoint(reach.inside(loop))
        is_inside = any(outer in found for outer in _loops_around(script, loop))
        if trains or is_inside or _is_suspended(loop):
            continue
        evidence = _evidence(script, loop, trusts_names=trusts_names)
        if evidence is not None and asking.in_loop(loop, evidence.only):
            found.add(loop)
    return frozenset(found)


def _is_suspended(loop: Loop) -> bool:
    """Whether other code runs between the passes of a loop: it yields or awaits."""
    return any(
        isinstance(node, _SUSPENDING) or (isinstance(node, ast.comprehension) and node.is_async)
        for node in (loop, *own_nodes(loop))
    )


@attrs.frozen
class _Evidence:
    """What says that a loop evaluates."""

    only: str | None = None  # the model whose mode is all that says it


def _evidence(script: Script, loop: Loop, *, trusts_names: bool) -> _Evidence | None:
    """Return what says that a loop evaluates: a name, the mode, or that there are no gradients."""
    function = script.function_around(loop)
    if function is not None and is_method(script, function) and function.name in _NEVER_EVALUATE:
        return None
    mode, model = _mode_before(script, loop)
    if mode == "train":
        return None
    if trusts_names and any(says_evaluation(name) for name in _functions_around(script, loop)):
        return _Evidence()
    if _is_gradient_free(script, loop) and not (mode is None and _steps_environment(loop)):
        return _Evidence()
    return _Evidence(only=model) if mode == "eval" else None


def _mode_before(script: Script, loop: Loop) -> tuple[str | None, str]:
    """Return which mode the nearest `X.eval()` or `X.train()` before a loop sets, and of what."""
    node: ast.AST = loop
    while True:
        parent = script.parents.get(node)
        if parent is None:
            return None, ""
        for statement in reversed(_statements_before(parent, node)):
            mode = mode_set_by(statement)
            if mode:
                return mode, _receiver(statement)
        if isinstance(parent, (*FUNCTION, *LOOP, ast.ClassDef)):
            return None, ""
        node = parent


def _receiver(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver))):
            return ast.unparse(receiver)
    return ""


def _steps_environment(loop: Loop) -> bool:
    """Whether a loop collects what a policy does in an environment, to train on it."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and isinstance(node.func.value, ast.Name | ast.Attribute)
        and says_environment(ast.unparse(node.func.value))
        for node in own_nodes(loop)
    )


def mode_set_by(statement: ast.stmt) -> str | None:
    """Return "train" or "eval" if that is all that a statement calls: `model.eval()`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="eval"), args=[], keywords=[])):
            return "eval"
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="train"), args=args, keywords=named)):
            values = [*args, *(keyword.value for keyword in named)]
            match values:
                case [] | [ast.Constant(value=True)]:
                    return "train"
                case [ast.Constant(value=False)]:
                    return "eval"
    return None


def _statements_before(parent: ast.AST, node: ast.AST) -> Sequence[ast.stmt]:
    for _, block in ast.iter_fields(parent):
        if isinstance(block, list) and node in block:
            return block[: block.index(node)]
    return ()


def _functions_around(script: Script, node: ast.AST) -> Iterator[str]:
    function = script.function_around(node)
    while function is not None:
        yield function.name
        function = script.function_around(function)


def _loops_around(script: Script, node: ast.AST) -> Iterator[ast.AST]:
    loop = script.enclosing(node, LOOP)
    while loop is not None:
        yield loop
        loop = script.enclosing(loop, LOOP)


def _is_gradient_free(script: Script, loop: Loop) -> bool:
    """Whether a loop stands under `no_grad` or `inference_mode`, as a block or a decorator."""
    node = script.parents.get(loop)
    while node is not None:
        if isinstance(node, ast.With | ast.AsyncWith):
            marks = [item.context_expr for item in node.items]
        elif isinstance(node, FUNCTION):
            marks = node.decorator_list
        else:
            marks = []
        if any(_switches_gradients_off(script, mark) for mark in marks):
            return True
        if isinstance(node, FUNCTION):
            return False
        node = script.parents.get(node)
    return False


def _switches_gradients_off(script: Script, node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return (script.dotted(called) or "").rpartition(".")[2] in _GRADIENT_FREE
