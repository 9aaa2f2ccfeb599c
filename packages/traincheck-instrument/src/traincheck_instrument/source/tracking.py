"""Finds the assignments to the names that are tracked, and the names that could be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_instrument.source.script import Script, own_nodes
from traincheck_instrument.source.values import Instance, Meanings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

Target: TypeAlias = ast.Name | ast.Attribute
_MODULE_METHODS = frozenset({"parameters", "named_parameters", "train", "eval"})
_MAKING_MODULES = ("torch.nn.", "torchvision.models.", "timm.")
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)


@attrs.frozen
class Tracked:
    """An assignment to a tracked name: after which statement, to what, under which name."""

    statement: ast.stmt
    target: Target
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
    found = [one for one in _assignments(script.tree) if _name_of(one[1], names)]
    is_plain = {target.id for _, target in found if isinstance(target, ast.Name)}
    for statement, target in found:
        name = _name_of(target, names)
        # What a model calls `self.model` is a part of the one that the script calls `model`.
        is_part = isinstance(target, ast.Attribute) and name in is_plain
        if name and not (is_part and _stands_in_module(script, target)):
            yield Tracked(statement, target, name)


def bound_names(script: Script, meanings: Meanings) -> BoundNames:
    """Return what a script assigns, for messages about names that it does not."""
    modules: dict[str, None] = {}
    others: dict[str, None] = {}
    used = _used_as_module(script.tree)
    for statement, target in _assignments(script.tree):
        spelled = ast.unparse(target)
        is_part = isinstance(target, ast.Attribute) and _stands_in_module(script, target)
        is_whole = not is_part and not _is_literal(statement)
        makes = spelled in used or _makes_module(script, meanings, _value_of(statement))
        (modules if is_whole and makes else others).setdefault(spelled)
    return BoundNames(tuple(modules), tuple(name for name in others if name not in modules))


def _assignments(tree: ast.Module) -> Iterator[tuple[ast.stmt, Target]]:
    """Yield each statement that assigns, with each name and attribute that it assigns to."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets.append(node.target)
        elif isinstance(node, ast.With | ast.AsyncWith):
            targets += [item.optional_vars for item in node.items if item.optional_vars]
        if isinstance(node, _SIMPLE):
            targets += [one.target for one in own_nodes(node) if isinstance(one, ast.NamedExpr)]
        if isinstance(node, ast.stmt):
            for target in targets:
                for one in _leaves(target):
                    yield node, one


def _leaves(target: ast.expr) -> Iterator[Target]:
    if isinstance(target, ast.Name | ast.Attribute):
        yield target
    elif isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _leaves(one)


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


def by_statement(tracked: Sequence[Tracked]) -> Mapping[ast.stmt, Sequence[Tracked]]:
    """Return the tracked assignments of each statement, in order."""
    grouped: dict[ast.stmt, list[Tracked]] = {}
    for one in tracked:
        grouped.setdefault(one.statement, []).append(one)
    return grouped
