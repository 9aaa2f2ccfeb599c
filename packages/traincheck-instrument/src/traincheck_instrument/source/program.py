"""Reads a program without running it: its script, and the modules of its own that it imports."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from traincheck_instrument.source.marks import marks_by_hand
from traincheck_instrument.source.own_files import OwnFiles
from traincheck_instrument.source.rewriting import Rewritten, rewrite
from traincheck_instrument.source.script import Script, parse
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@attrs.frozen(kw_only=True, eq=False)
class Program:
    """A script and the modules of its own, with the marks that are put in."""

    script: Rewritten
    modules: tuple[Rewritten, ...]  # those in which something is marked
    by_hand: frozenset[str]  # our functions that one of the files calls itself

    @property
    def files(self) -> tuple[Rewritten, ...]:
        """The script, and the modules in which something is marked."""
        return (self.script, *self.modules)

    @property
    def steps_from(self) -> Literal["source", "hand"] | None:
        """What marks the steps of training; None if nothing does."""
        if not self.by_hand.isdisjoint({"start_step", "training_step"}):
            return "hand"
        return "source" if self._has("training") else None

    @property
    def marks_evaluation(self) -> bool:
        """Whether anything marks the evaluation, a stage by hand included."""
        return self._has("evaluation") or not self.by_hand.isdisjoint(
            {"start_eval_step", "evaluation", "annotate_stage"}
        )

    def _has(self, kind: Literal["training", "evaluation"]) -> bool:
        return any(loop.kind == kind for file in self.files for loop in file.findings.loops)


def folder_of_imports(script: Path, module: str | None = None) -> Path:
    """Return the folder in which the modules of a program's own are.

    Args:
        script: The path of its script.
        module: The full name of the script, if it runs as a module; it ends in `.__main__` if the
            module is a package.
    """
    return script.resolve().parents[0 if module is None else module.count(".")]


def read_program(
    source: bytes,
    script: Path,
    models: Sequence[str],
    packages: Sequence[str] = (),
    *,
    module: str | None = None,
) -> Program:
    """Read a program, and put the marks in, as it is done when it runs.

    Args:
        source: The script.
        script: Its path; the modules are looked for beside it.
        models: Names to track; where the script does not assign one, the modules may.
        packages: Packages of the user's whose modules are read too, wherever they lie.
        module: The full name of the script, if it runs as a module.

    Raises:
        ConfigError: the script is no Python.
    """
    own = OwnFiles(str(folder_of_imports(script, module)), tuple(packages), tuple(models))
    imported = dict(_imported_files(source, script.resolve(), own, module or ""))
    by_hand = frozenset[str]().union(*(marks_by_hand(one) for _, one in imported.values()))
    rewritten = rewrite(source, str(script), models, by_hand=by_hand)
    by_hand |= rewritten.findings.by_hand
    rest = rewritten.names_left(models)
    modules = [
        rewrite(text, str(path), rest, by_hand=by_hand, is_module=True)
        for path, (text, _) in sorted(imported.items())
        if own.is_worth_reading(text)
    ]
    return Program(
        script=rewritten,
        modules=tuple(one for one in modules if one.findings.has_marks),
        by_hand=by_hand,
    )


def _imported_files(
    source: bytes, script: Path, own: OwnFiles, name: str
) -> Iterator[tuple[Path, tuple[bytes, Script]]]:
    """Yield the modules that a script, and what it imports, import; what can't be read is none.

    The packages around a script that runs as a module, `name`, are imported before it.
    """
    folders = [Path(folder) for folder in own.folders()]
    parsed = _parsed(source, script)
    waiting = list(_files_of(name.split("."), folders)) if name else []
    if parsed is not None:
        waiting += _imports(parsed.tree, script, name, folders)
    seen = {script}
    while waiting:
        path, module = waiting.pop()
        if path in seen or not own.has(module, str(path)):
            continue
        seen.add(path)
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if (read := _parsed(text, path)) is not None:
            yield path, (text, read)
            waiting += _imports(read.tree, path, module, folders)


def _parsed(source: bytes, path: Path) -> Script | None:
    try:
        return parse(source, str(path))
    except (ConfigError, RecursionError, MemoryError):  # the program itself says what is wrong
        return None


def _imports(
    tree: ast.Module, file: Path, module: str, folders: Sequence[Path]
) -> Iterator[tuple[Path, str]]:
    """Yield the files of the modules that the statements of a file import, with their names.

    Args:
        tree: The file.
        file: Its path.
        module: Its name as a module; the script has none.
        folders: Where modules are looked for.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(alias.name.split("."), folders)
        elif isinstance(node, ast.ImportFrom):
            named = node.module.split(".") if node.module else []
            # A relative import starts from the package that holds the file.
            places = [file.parents[node.level - 1]] if node.level else folders
            around = _package_around(module, file, node.level)
            for alias in node.names:
                for path, name in _files_of([*named, alias.name], places):
                    yield path, f"{around}{name}"


def _package_around(module: str, file: Path, level: int) -> str:
    """Return the package from which a relative import of this level starts, with its last dot."""
    parts = module.split(".") if module else []
    left_out = level - (file.name == "__init__.py")
    kept = parts[: max(len(parts) - left_out, 0)] if level else []
    return "".join(f"{part}." for part in kept)


def _files_of(parts: Sequence[str], folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files that importing a dotted name runs: packages, and the module itself."""
    for folder in folders:
        place = folder
        for index, part in enumerate(parts):
            name = ".".join(parts[: index + 1])
            if (module := place / f"{part}.py").is_file():
                yield module.resolve(), name
                return
            place /= part
            if not place.is_dir():
                break
            if (package := place / "__init__.py").is_file():
                yield package.resolve(), name
