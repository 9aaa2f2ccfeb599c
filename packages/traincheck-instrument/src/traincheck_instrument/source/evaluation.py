"""Finds the evaluation loops: those that call a model where nothing is trained."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from traincheck_instrument.source.script import (
    FUNCTION,
    LOOP,
    Function,
    Loop,
    Script,
    is_method,
    own_nodes,
)
from traincheck_instrument.source.words import says_evaluation, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_instrument.source.training import Reach
    from traincheck_instrument.source.values import Meanings

_GRADIENT_FREE = ("no_grad", "inference_mode")
# Methods by which a model is asked for its output.
_ASKING = word_set(
    "forward generate predict decode encode sample test_step eval_step validation_step"
)
# What a loop goes over that changes a model rather than asking it.
_PARTS = word_set(
    "parameters named_parameters modules named_modules children named_children buffers "
    "named_buffers state_dict param_groups"
)
# Where a function hands control to its caller, whose stage is another.
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_NEVER_EVALUATE = frozenset({"__init__", "forward", "step"})


def evaluation_loops(
    script: Script, meanings: Meanings, reach: Reach, training: frozenset[Loop]
) -> frozenset[Loop]:
    """Return the evaluation loops; of nested ones the outermost that itself asks a model."""
    asking = _Asking(script, meanings)
    found: set[Loop] = set()
    for loop in script.loops():  # outer loops come before inner ones
        trains = loop in training or not training.isdisjoint(reach.inside(loop))
        is_inside = any(outer in found for outer in _loops_around(script, loop))
        if trains or is_inside or _is_suspended(loop):
            continue
        if _is_evaluating(script, loop) and asking.in_loop(loop):
            found.add(loop)
    return frozenset(found)


def _is_suspended(loop: Loop) -> bool:
    """Whether other code runs between the passes of a loop: it yields or awaits."""
    return any(
        isinstance(node, _SUSPENDING) or (isinstance(node, ast.comprehension) and node.is_async)
        for node in (loop, *own_nodes(loop))
    )


class _Asking:
    """Where in a script a model is asked, also through functions of the script."""

    def __init__(self, script: Script, meanings: Meanings) -> None:
        self._script = script
        self._meanings = meanings
        self._known: dict[Function, bool] = {}
        self._attributes = {
            node.attr
            for node in ast.walk(script.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }

    def in_loop(self, loop: Loop) -> bool:
        """Whether a loop itself asks a model, those inside it left out."""
        if isinstance(loop, ast.For | ast.AsyncFor) and _goes_over_parts(loop.iter):
            return False
        return any(self._asks(call) for call in _calls_outside_loops(loop.body))

    def _asks(self, call: ast.Call) -> bool:
        func = call.func
        callees = list(self._meanings.callees(call))
        if callees and not self._is_object(func):
            return any(map(self._in_function, callees))
        if isinstance(func, ast.Attribute) and func.attr in _ASKING:
            return True
        return self._is_object(func)

    def _in_function(self, function: Function) -> bool:
        if function not in self._known:
            self._known[function] = False  # holds while a recursive call is looked into
            calls = [node for node in own_nodes(function) if isinstance(node, ast.Call)]
            self._known[function] = any(map(self._asks, calls))
        return self._known[function]

    def _is_object(self, func: ast.expr) -> bool:
        """Whether what is called is an object that a variable holds: `model(x)`, `self.net(x)`."""
        match func:
            case ast.Name(id=name):
                return self._is_variable(func, name)
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                cls = self._script.class_around(func)
                has_method = cls is not None and self._script.method(cls, attr) is not None
                return attr in self._attributes and not has_method
        return False

    def _is_variable(self, node: ast.Name, name: str) -> bool:
        if name in self._script.functions or name in self._script.classes:
            return False
        function = self._script.function_around(node)
        while function is not None:
            if _binds(function, name):
                return True
            function = self._script.function_around(function)
        return _binds(self._script.tree, name)


def _is_evaluating(script: Script, loop: Loop) -> bool:
    """Whether a loop stands where a model is evaluated: by name, by mode, or without gradients."""
    function = script.function_around(loop)
    if function is not None and is_method(script, function) and function.name in _NEVER_EVALUATE:
        return False
    mode = _mode_before(script, loop)
    if mode is not None:
        return mode == "eval"
    if any(says_evaluation(name) for name in _functions_around(script, loop)):
        return True
    return _is_gradient_free(script, loop)


def _mode_before(script: Script, loop: Loop) -> str | None:
    """Return which mode the nearest `X.eval()` or `X.train()` statement before a loop sets."""
    node: ast.AST = loop
    while True:
        parent = script.parents.get(node)
        if parent is None:
            return None
        for statement in reversed(_statements_before(parent, node)):
            mode = mode_set_by(statement)
            if mode:
                return mode
        if isinstance(parent, (*FUNCTION, *LOOP, ast.ClassDef)):
            return None
        node = parent


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


def _goes_over_parts(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr in _PARTS for one in ast.walk(node))


def _calls_outside_loops(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, (*FUNCTION, *LOOP, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))


def _binds(scope: Function | ast.Module, name: str) -> bool:
    """Whether a scope binds a name as a variable or a parameter."""
    if isinstance(scope, FUNCTION):
        arguments = scope.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if any(argument.arg == name for argument in every):
            return True
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in own_nodes(scope)
    )
