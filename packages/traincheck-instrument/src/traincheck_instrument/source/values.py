"""What the names of a script stand for, as far as training is concerned.

A flow-insensitive analysis: a name stands for all that is ever assigned to it, in any scope. That
is enough to tell an optimizer from a scheduler, and to find the function that a call reaches.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_instrument.source.script import FUNCTION, Function, Script, is_method, own_nodes
from traincheck_instrument.source.words import Role, role_of_maker, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ROUNDS = 6  # of propagation; a chain of assignments is rarely longer
_FORWARDING = frozenset({"compile", "partial", "jit", "wraps"})  # give back what they are given
# Methods that so many classes have that the name says nothing about the object.
_COMMON = word_set(
    "add append backward clear close copy eval extend forward get items join keys load "
    "load_state_dict log next parameters pop read save set state_dict step to train update values "
    "write zero_grad"
)


@attrs.frozen
class Instance:
    """An object of a class of the script."""

    cls: ast.ClassDef


@attrs.frozen
class Maker:
    """A class or function of a library that makes objects of this role."""

    role: Role


Value: TypeAlias = Role | Instance | Maker | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Values: TypeAlias = frozenset[Value]
_NOTHING: Values = frozenset()


class Meanings:
    """What expressions of a script stand for."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._names: defaultdict[str, set[Value]] = defaultdict(set)  # ".x" for attributes
        self._returns: defaultdict[Function, set[Value]] = defaultdict(set)
        # Of each call, since a chain `a.f().g()...` asks for each link more than once.
        self._made: dict[ast.Call, Values] = {}
        nodes = list(ast.walk(script.tree))
        for _ in range(_ROUNDS):
            before = self._size()
            for node in nodes:
                self._learn(node)
            self._made.clear()
            if self._size() == before:
                break

    def of(self, node: ast.expr | None) -> Values:
        """Return what an expression may stand for; of a container, what it holds."""
        parts: Sequence[ast.expr | None] = ()
        match node:
            case ast.Name() | ast.Attribute():
                return self._of_name(node)
            case ast.Call():
                if node not in self._made:
                    self._made[node] = self._of_call(node)
                return self._made[node]
            case ast.IfExp(body=one, orelse=other):
                parts = (one, other)
            case (
                ast.BoolOp(values=parts)
                | ast.List(elts=parts)
                | ast.Tuple(elts=parts)
                | ast.Dict(values=parts)
            ):
                pass
            case (
                ast.ListComp(elt=part)
                | ast.GeneratorExp(elt=part)
                | ast.DictComp(value=part)
                | ast.NamedExpr(value=part)
                | ast.Await(value=part)
                | ast.Starred(value=part)
                | ast.Subscript(value=part)
            ):
                parts = (part,)
        return self._union(parts)

    def callees(self, call: ast.Call) -> Iterator[Function]:
        """Yield the functions of the script that a call may reach, those passed to it included."""
        yield from self._reached(call.func)
        if not registers_hook(call):
            for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                if isinstance(argument, ast.Name | ast.Attribute):
                    yield from self._functions(argument)

    def _reached(self, func: ast.expr) -> Iterator[Function]:
        found = list(self._functions(func))
        yield from found
        for value in self.of(func):
            cls, name = (
                (value, "__init__")
                if isinstance(value, ast.ClassDef)
                else (value.cls, "__call__")
                if isinstance(value, Instance)
                else (None, "")
            )
            method = cls and self._script.method(cls, name)
            if method:
                yield method

    def _functions(self, node: ast.expr) -> Iterator[Function]:
        """Yield the functions and methods that a name or attribute refers to."""
        found = [value for value in self.of(node) if isinstance(value, FUNCTION)]
        if isinstance(node, ast.Attribute):
            classes = self._classes(node.value)
            methods = [self._script.method(cls, node.attr) for cls in classes]
            found += [method for method in methods if method] or self._namesakes(node)
        yield from dict.fromkeys(found)

    def _classes(self, receiver: ast.expr) -> Iterator[ast.ClassDef]:
        """Yield the classes of the script whose object, or who itself, the receiver may be."""
        cls = self._script.class_around(receiver)
        match receiver:
            case ast.Name(id="self" | "cls") if cls:
                yield cls
            case ast.Call(func=ast.Name(id="super")) if cls:
                yield from list(self._script.bases(cls))[1:]
            case _:
                for value in self.of(receiver):
                    if isinstance(value, Instance | ast.ClassDef):
                        yield value.cls if isinstance(value, Instance) else value

    def _namesakes(self, node: ast.Attribute) -> Iterator[Function]:
        """Yield the methods that a call on an object of unknown class may reach."""
        root = (self._script.dotted(node) or "").partition(".")[0]
        is_foreign = root in {"self", "cls"} or root in self._script.imports.values()
        if node.attr in _COMMON or is_foreign or self.of(node.value):
            return
        for classes in self._script.classes.values():
            for cls in classes:
                method = self._script.method(cls, node.attr)
                if method:
                    yield method

    def _of_name(self, node: ast.Name | ast.Attribute) -> Values:
        if isinstance(node, ast.Attribute):
            known = self._names.get(f".{node.attr}", set())
        else:
            known = {
                *self._names.get(node.id, ()),
                *self._script.functions.get(node.id, ()),
                *self._script.classes.get(node.id, ()),
            }
        return frozenset(known) or self._maker(node)

    def _of_call(self, call: ast.Call) -> Values:
        made: set[Value] = set()
        for value in self.of(call.func):
            if isinstance(value, ast.ClassDef):
                made.add(Instance(value))
                if self._is_optimizer_class(value):
                    made.add(Role.OPTIMIZER)
            elif isinstance(value, Maker):
                made.add(value.role)
        for function in self._functions(call.func):
            made |= self._returns[function]
        name = self._script.dotted(call.func) or ""
        if name.rpartition(".")[2] in _FORWARDING:
            made |= {value for value in self._union(call.args) if not isinstance(value, Role)}
        if name == "getattr" and call.args:
            module = self._script.dotted(call.args[0]) or ""
            made |= self._as_maker(role_of_maker(f"{module}.X"))
        elif isinstance(call.func, ast.Attribute) and call.func.attr in {"values", "get", "pop"}:
            made |= self.of(call.func.value)
        return frozenset(made)

    def _is_optimizer_class(self, cls: ast.ClassDef) -> bool:
        names = [self._script.dotted(base) for one in self._script.bases(cls) for base in one.bases]
        return any(
            role_of_maker(name) is Role.OPTIMIZER for name in (*filter(None, names), cls.name)
        )

    def _maker(self, node: ast.expr) -> Values:
        """Return what a dotted name that nothing is assigned to makes, to judge by its name."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        dotted = self._script.dotted(node)
        if dotted is None or not isinstance(root, ast.Name) or root.id in {"self", "cls"}:
            return _NOTHING
        parent = self._script.parents.get(node)
        is_called = isinstance(parent, ast.Call) and parent.func is node
        is_library = root.id in self._script.imports
        return self._as_maker(role_of_maker(dotted)) if is_called or is_library else _NOTHING

    @staticmethod
    def _as_maker(role: Role | None) -> Values:
        return _NOTHING if role is None else frozenset({Maker(role)})

    def _union(self, items: Iterable[ast.expr | None]) -> Values:
        return _NOTHING.union(*(self.of(item) for item in items))

    def _size(self) -> int:
        return sum(map(len, self._names.values())) + sum(map(len, self._returns.values()))

    # Learning: each kind of node that binds a name.

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                self._bind(target, value)
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                self._bind_item(node.target, node.iter)
            case ast.Call():
                self._bind_arguments(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for value in _returned(node):
                    self._returns[node] |= self.of(value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = self._parts(value)
            if len(parts) == len(target.elts):
                for one, part in zip(target.elts, parts, strict=True):
                    self._bind(one, part)
            elif (self._script.dotted(value.func) if isinstance(value, ast.Call) else "") == (
                "deepspeed.initialize"
            ):
                roles = (Role.ENGINE, Role.OPTIMIZER, Role.OTHER, Role.SCHEDULER)
                for one, role in zip(target.elts, roles, strict=False):
                    self._add(one, frozenset({role}))
        else:
            self._add(target, self.of(value))

    def _bind_item(self, target: ast.expr, iterable: ast.expr) -> None:
        """Bind the target of a loop to what it iterates over."""
        match iterable, target:
            case ast.Call(func=ast.Name(id="enumerate"), args=[items, *_]), ast.Tuple(
                elts=[_, one]
            ):
                self._bind_item(one, items)
            case ast.Call(func=ast.Name(id="zip"), args=many), ast.Tuple(elts=targets):
                for one, items in zip(targets, many, strict=False):
                    self._bind_item(one, items)
            case ast.Call(func=ast.Attribute(attr="items", value=items)), ast.Tuple(elts=[_, one]):
                self._add(one, self.of(items))
            case _:
                self._add(target, self.of(iterable))

    def _parts(self, value: ast.expr) -> Sequence[ast.expr]:
        """Return the expressions that a value is unpacked to, as far as they are known."""
        match value:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return parts
            case ast.Call(func=ast.Attribute(attr="prepare" | "setup"), args=parts):
                return parts  # accelerate and Fabric give back, wrapped, what they are given
            case ast.Call():
                for function in self._functions(value.func):
                    for returned in _returned(function):
                        if isinstance(returned, ast.Tuple):
                            return returned.elts
        return ()

    def _bind_arguments(self, call: ast.Call) -> None:
        for function in set(self._reached(call.func)):
            names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
            if is_method(self._script, function):
                names = names[1:]
            for name, value in zip(names, call.args, strict=False):
                self._names[name] |= self.of(value)
            known = {*names, *(arg.arg for arg in function.args.kwonlyargs)}
            for keyword in call.keywords:
                if keyword.arg in known:
                    self._names[str(keyword.arg)] |= self.of(keyword.value)

    def _add(self, target: ast.expr, values: Values) -> None:
        match target:
            case ast.Name(id=name):
                self._names[name] |= values
            case ast.Attribute(attr=attr):
                self._names[f".{attr}"] |= values
            case ast.Subscript(value=container):
                self._add(container, values)


def registers_hook(call: ast.Call) -> bool:
    """Whether what is passed to a call runs at another time: `p.register_hook(f)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr.startswith("register")


def _returned(function: Function) -> Iterator[ast.expr]:
    for node in own_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
