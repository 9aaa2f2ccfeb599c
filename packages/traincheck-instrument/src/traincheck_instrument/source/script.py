"""The user's script, parsed once: its tree, what stands where in it, and what it imports."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import decode_source
from typing import TypeAlias

import attrs

from traincheck_trace_schema.errors import ConfigError

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOP = (ast.For, ast.AsyncFor, ast.While)
DEFINITION = (*FUNCTION, ast.ClassDef)


@attrs.frozen(eq=False, kw_only=True)
class Script:
    """A parsed script; what refers to its nodes refers by identity."""

    tree: ast.Module
    filename: str
    parents: Mapping[ast.AST, ast.AST]
    functions: Mapping[str, Sequence[Function]]  # by name, at any depth, methods left out
    classes: Mapping[str, Sequence[ast.ClassDef]]
    imports: Mapping[str, str]  # name in the script: dotted name of what it stands for

    def enclosing(self, node: ast.AST, types: tuple[type[ast.AST], ...]) -> ast.AST | None:
        """Return the nearest node of these types around a node."""
        parent = self.parents.get(node)
        while parent is not None and not isinstance(parent, types):
            parent = self.parents.get(parent)
        return parent

    def function_around(self, node: ast.AST) -> Function | None:
        """Return the function in whose body a node stands."""
        found = self.enclosing(node, FUNCTION)
        return found if isinstance(found, FUNCTION) else None

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the nearest class around a node."""
        found = self.enclosing(node, (ast.ClassDef,))
        return found if isinstance(found, ast.ClassDef) else None

    def loops(self) -> Iterator[Loop]:
        """Yield every loop of the script, outer ones before those inside them."""
        for node in ast.walk(self.tree):
            if isinstance(node, LOOP):
                yield node

    def bases(self, cls: ast.ClassDef) -> Iterator[ast.ClassDef]:
        """Yield a class and those of its base classes that are the script's own."""
        waiting, seen = [cls], set()
        while waiting:
            one = waiting.pop(0)
            if one not in seen:
                seen.add(one)
                yield one
                for base in one.bases:
                    if isinstance(base, ast.Name):
                        waiting.extend(self.classes.get(base.id, ()))

    def method(self, cls: ast.ClassDef, name: str) -> Function | None:
        """Return the method that a class has, its own or an inherited one of the script."""
        for one in self.bases(cls):
            for node in one.body:
                if isinstance(node, FUNCTION) and node.name == name:
                    return node
        return None

    def is_module_class(self, cls: ast.ClassDef) -> bool:
        """Whether a class derives from `torch.nn.Module` or its like (`LightningModule`)."""
        return any(
            (self.dotted(base) or "").rpartition(".")[2].endswith("Module")
            for one in self.bases(cls)
            for base in one.bases
        )

    def dotted(self, node: ast.expr) -> str | None:
        """Return the dotted name that an expression spells, with imports resolved."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.imports.get(node.id, node.id), *reversed(parts)])


def parse(source: str | bytes, filename: str) -> Script:
    """Parse a script; bytes are decoded as its encoding line says.

    Raises:
        ConfigError: it is no Python; the message is the parser's own, with its line.
    """
    try:
        tree = ast.parse(source, filename)
    except SyntaxError as error:
        where = f"{filename}:{error.lineno}" if error.lineno else filename
        raise ConfigError(f"{where}: {type(error).__name__}: {error.msg}") from error
    except ValueError as error:  # a null byte
        raise ConfigError(f"{filename}: is no Python source: {error}") from error
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    functions: defaultdict[str, list[Function]] = defaultdict(list)
    classes: defaultdict[str, list[ast.ClassDef]] = defaultdict(list)
    imports: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION) and not isinstance(parents[node], ast.ClassDef):
            functions[node.name].append(node)
        elif isinstance(node, ast.ClassDef):
            classes[node.name].append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(_imported(node))
    return Script(
        tree=tree,
        filename=filename,
        parents=parents,
        functions=dict(functions),
        classes=dict(classes),
        imports=imports,
    )


def decoded(source: str | bytes) -> str:
    """Return the text of a script; bytes are decoded as its encoding line says."""
    return source if isinstance(source, str) else decode_source(source)


def is_method(script: Script, function: Function) -> bool:
    """Whether a function stands directly in the body of a class."""
    return isinstance(script.parents[function], ast.ClassDef)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a node, but not what stands in definitions inside it."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, DEFINITION):
            waiting.extend(ast.iter_child_nodes(child))


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}".lstrip(".")
        elif alias.asname:
            yield alias.asname, alias.name
        else:
            root = alias.name.partition(".")[0]
            yield root, root
