"""Finds the assignments to the names that are tracked, and the names that could be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import attrs

from traincheck_instrument.source.script import Script, own_nodes
from traincheck_instrument.source.values import Instance, Meanings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Target: TypeAlias = ast.Name | ast.Attribute
Binder: TypeAlias = ast.Assign | ast.AnnAssign | ast.NamedExpr
_MODULE_METHODS = frozenset({"parameters", "named_parameters", "train", "eval"})
_MAKING_MODULES = ("torch.nn.", "torchvision.models.", "timm.")
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)


@attrs.frozen(eq=False)
class Assignment:
    """A name or an attribute that a statement assigns to."""

    statement: ast.stmt
    target: Target
    binder: Binder | None  # whose value it gets; None if it gets a part or an item of one


@attrs.frozen(eq=False)
class Tracked(Assignment):
    """An assignment whose value is tracked, under a name."""

    name: str


@attrs.frozen
class BoundNames:
    """The names that a script assigns: those that seem to hold a model, and the others."""

    modules: tuple[str, ...]
    others: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.modules or name in self.others


def tracked_assignments(script: Script, names: Collection[str]) -> Iterator[Tracked]:
    """Yield the assignments to these names; a plain name stands for attributes of that name too."""
    found = [one for one in _assignments(script.tree) if _name_of(one.target, names)]
    is_plain = {one.target.id for one in found if isinstance(one.target, ast.Name)}
    for one in found:
        target, name = one.target, _name_of(one.target, names)
        # What a model calls `self.model` is a part of the one that the script calls `model`.
        is_part = isinstance(target, ast.Attribute) and name in is_plain
        if name and not (is_part and _stands_in_module(script, target)):
            yield Tracked(one.statement, target, one.binder, name)


def bound_names(script: Script, meanings: Meanings) -> BoundNames:
    """Return what a script assigns, for messages about names that it does not."""
    modules: dict[str, None] = {}
    others: dict[str, None] = {}
    used = _used_as_module(script.tree)
    for one in _assignments(script.tree):
        statement, target = one.statement, one.target
        spelled = ast.unparse(target)
        is_part = isinstance(target, ast.Attribute) and _stands_in_module(script, target)
        is_whole = not is_part and not _is_literal(statement)
        makes = spelled in used or _makes_module(script, meanings, _value_of(statement))
        (modules if is_whole and makes else others).setdefault(spelled)
    return BoundNames(tuple(modules), tuple(name for name in others if name not in modules))


def _assignments(tree: ast.Module) -> Iterator[Assignment]:
    """Yield all that the statements assign to."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        for target, binder in _bindings(node):
            if binder is not None and isinstance(target, Target):
                yield Assignment(node, target, binder)
            else:
                for one in _leaves(target):
                    yield Assignment(node, one, None)


def _bindings(statement: ast.stmt) -> Iterator[tuple[ast.expr, Binder | None]]:
    """Yield the targets of a statement, each with what binds a whole value to it."""
    match statement:
        case ast.Assign(targets=targets):
            yield from ((target, statement) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr()):
            yield target, statement
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from ((item.optional_vars, None) for item in items if item.optional_vars)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield target, None
    if isinstance(statement, _SIMPLE):
        for node in own_nodes(statement):
            if isinstance(node, ast.NamedExpr):
                yield node.target, node


def _leaves(target: ast.expr) -> Iterator[Target]:
    """Yield the names in a target, and the attributes that can be read back without a call."""
    if isinstance(target, ast.Name) or _is_chain(target):
        yield target
    elif isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _leaves(one)


def _is_chain(target: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether a target is names with dots between them: `self.net.model`."""
    root = target
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(target, ast.Attribute) and isinstance(root, ast.Name)


def _name_of(target: Target, names: Collection[str]) -> str | None:
    """Return the name under which a target is tracked."""
    spelled = ast.unparse(target)
    short = target.attr if isinstance(target, ast.Attribute) else target.id
    return next((name for name in (spelled, short) if name in names), None)


def _stands_in_module(script: Script, node: ast.AST) -> bool:
    cls = script.class_around(node)
    return cls is not None and script.is_module_class(cls)


def _value_of(statement: ast.stmt) -> ast.expr | None:
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def _is_literal(statement: ast.stmt) -> bool:
    return isinstance(_value_of(statement), ast.Constant | ast.JoinedStr)


def _makes_module(script: Script, meanings: Meanings, value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return False
    dotted = script.dotted(value.func) or ""
    if dotted.startswith(_MAKING_MODULES) and not dotted.endswith("Loss"):
        return dotted.rpartition(".")[2][0].isupper() or not dotted.startswith("torch.nn.")
    return any(
        isinstance(one, Instance) and script.is_module_class(one.cls) for one in meanings.of(value)
    )


def _used_as_module(tree: ast.Module) -> frozenset[str]:
    return frozenset(
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in _MODULE_METHODS
        and isinstance(node.value, ast.Name | ast.Attribute)
    )
