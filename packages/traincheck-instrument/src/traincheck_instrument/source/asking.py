"""Finds where a script asks a model for its output."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from traincheck_instrument.source.script import (
    FUNCTION,
    LOOP,
    Function,
    Loop,
    Script,
    own_nodes,
)
from traincheck_instrument.source.values import Instance
from traincheck_instrument.source.words import (
    STEPPING,
    role_of_name,
    says_epoch,
    says_handling,
    says_model,
    says_no_model,
    word_set,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_instrument.source.values import Meanings

# Methods by which a model is asked for its output.
_ASKING = word_set(
    "forward generate predict decode encode sample infer log_prob compute_loss shared_step "
    "forward_step test_step eval_step validation_step"
)
# What a loop goes over that changes a model, or applies it part by part, rather than asking it.
_PARTS = word_set(
    "parameters named_parameters modules named_modules children named_children buffers "
    "named_buffers state_dict param_groups layers blocks"
)
_OF_MODULES = word_set("parameters named_parameters eval")  # methods that tell a model
_BUILTINS = frozenset(vars(builtins))


class Asking:
    """Where in a script a model is asked, also through functions of the script.

    A model is asked by a call of the object itself, however it is reached; by one of its methods
    that is given data; and by a call that is given both the model and data.
    """

    def __init__(self, script: Script, meanings: Meanings) -> None:
        self._script = script
        self._meanings = meanings
        self._known: dict[tuple[Function, str | None], bool] = {}
        self._attributes = {
            node.attr
            for node in ast.walk(script.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        self._imported = {name.partition(".")[0] for name in script.imports.values()}
        self._models = frozenset(_used_as_models(script.tree)) - {"self"}

    def in_loop(self, loop: Loop, only: str | None = None) -> bool:
        """Whether a loop itself asks a model, those inside it left out.

        Args:
            loop: The loop.
            only: As it is spelled, the only model that a call may be given; None: any.
        """
        if isinstance(loop, ast.For | ast.AsyncFor) and _goes_over_parts(loop.iter):
            return False
        return any(self._asks(call, only) for call in _calls_outside_loops(loop.body))

    def _asks(self, call: ast.Call, only: str | None) -> bool:
        func = call.func
        is_object = self._is_object(func)
        callees = list(self._meanings.callees(call))
        if callees and not is_object:
            return any(self._in_function(callee, only) for callee in callees)
        return is_object or self._is_method(call) or self._hands_on(call, only)

    def _in_function(self, function: Function, only: str | None) -> bool:
        key = (function, only)
        if key not in self._known:
            self._known[key] = False  # holds while a recursive call is looked into
            calls = [node for node in own_nodes(function) if isinstance(node, ast.Call)]
            self._known[key] = any(self._asks(call, only) for call in calls)
        return self._known[key]

    def _is_object(self, func: ast.expr) -> bool:
        """Whether what is called is an object: `model(x)`, `task.net(x)`, `models[i](x)`."""
        match func:
            case ast.Name(id=name):
                return self._is_variable(func, name) and not self._is_of_other_kind(func)
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                cls = self._script.class_around(func)
                has_method = cls is not None and self._script.method(cls, attr) is not None
                is_held = attr in self._attributes and not says_no_model(attr)
                return not has_method and (is_held or self._is_model(func))
            case ast.Subscript(value=container):
                return self._is_object(container)
            case ast.Call(func=maker):
                return self._is_made_from_model(func) and not says_handling(_last_name(maker))
        return self._is_model(func)

    def _is_method(self, call: ast.Call) -> bool:
        """Whether a call is that of a method by which a model is asked."""
        match call.func:
            case ast.Attribute(attr=name, value=receiver) if name in _ASKING:
                return not says_no_model(_last_name(receiver))
            case ast.Attribute(attr=name, value=receiver):
                return self._is_model(receiver) and not says_handling(name) and self._has_data(call)
        return False

    def _hands_on(self, call: ast.Call, only: str | None) -> bool:
        """Whether a call is given a model, and data to ask it about: `loss_of(model, batch)`."""
        name = _last_name(call.func)
        dotted = self._script.dotted(call.func) or ""
        is_of_torch = dotted.startswith("torch.") and name != "functional_call"
        if name in _BUILTINS or says_handling(name) or is_of_torch:
            return False
        arguments = _arguments(call)
        if any(map(self._trains, arguments)):
            return False
        # A second model, in another mode, may be what is trained.
        given = {ast.unparse(argument) for argument in arguments if self._is_model(argument)}
        is_meant = only in {None, "self"} or given == {only}
        return bool(given) and is_meant and self._has_data(call)

    def _trains(self, argument: ast.expr) -> bool:
        roles = (role_of_name(_last_name(argument)), *self._meanings.of(argument))
        return not STEPPING.isdisjoint(roles)

    def _is_model(self, node: ast.expr) -> bool:
        """Whether an expression is a model: by its name, its use, its class or what it wraps."""
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                is_code = (
                    (self._script.dotted(node) or "").partition(".")[0] in self._imported
                    or name in self._script.functions
                    or name in self._script.classes
                )
                return not is_code and (
                    says_model(name) or name in self._models or self._is_instance(node)
                )
            case ast.Subscript(value=container):
                return self._is_model(container)
        return False

    def _is_made_from_model(self, node: ast.expr) -> bool:
        """Whether a call makes something from a model: `unwrap(model)`."""
        return isinstance(node, ast.Call) and any(map(self._is_model, _arguments(node)))

    def _is_instance(self, node: ast.expr) -> bool:
        return any(
            isinstance(value, Instance) and self._script.is_module_class(value.cls)
            for value in self._meanings.of(node)
        )

    def _has_data(self, call: ast.Call) -> bool:
        """Whether a call is given what is made there, or differs from pass to pass."""
        changing = {name for name in self._bound_around(call) if not says_epoch(name)}
        return any(
            isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in changing)
            for argument in _arguments(call)
            if not (self._is_model(argument) or self._is_made_from_model(argument))
            for node in ast.walk(argument)
        )

    def _bound_around(self, call: ast.Call) -> Iterator[str]:
        """Yield the names that the nearest loop, or else the function, around a call binds."""
        scope = self._script.enclosing(call, (*LOOP, *FUNCTION)) or self._script.tree
        if isinstance(scope, FUNCTION):
            yield from (argument.arg for argument in _parameters(scope) if argument.arg != "self")
        for node in own_nodes(scope):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id

    def _is_variable(self, node: ast.Name, name: str) -> bool:
        if name in self._script.functions or name in self._script.classes:
            return False
        function = self._script.function_around(node)
        while function is not None:
            if _binds(function, name):
                return True
            function = self._script.function_around(function)
        return _binds(self._script.tree, name)

    def _is_of_other_kind(self, node: ast.Name) -> bool:
        """Whether a variable is a metric or the like: by its name, or what a loop takes it from."""
        loop = self._script.enclosing(node, LOOP)
        while isinstance(loop, LOOP):
            if isinstance(loop, ast.For | ast.AsyncFor) and _names(loop.target, node.id):
                named = (_last_name(one) for one in ast.walk(loop.iter))
                return says_no_model(node.id) or any(map(says_no_model, named))
            loop = self._script.enclosing(loop, LOOP)
        return says_no_model(node.id)


def _used_as_models(tree: ast.Module) -> Iterator[str]:
    """Yield the last names of what is asked for its parameters, or put into evaluation mode."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=receiver), args=[], keywords=[]):
                if attr in _OF_MODULES and isinstance(receiver, ast.Name | ast.Attribute):
                    yield _last_name(receiver)


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


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _parameters(function: Function) -> Sequence[ast.arg]:
    arguments = function.args
    return (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)


def _binds(scope: Function | ast.Module, name: str) -> bool:
    """Whether a scope binds a name as a variable or a parameter."""
    if isinstance(scope, FUNCTION) and any(one.arg == name for one in _parameters(scope)):
        return True
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in own_nodes(scope)
    )


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner) | ast.Call(func=inner):
            return _last_name(inner)
    return ""
