"""Puts the marks of steps and stages, and the tracking of models, into a script."""

from __future__ import annotations

import ast
import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from traincheck_instrument.source import marks
from traincheck_instrument.source.evaluation import evaluation_loops, mode_set_by
from traincheck_instrument.source.guards import first_of_work
from traincheck_instrument.source.recursion import deep_recursion
from traincheck_instrument.source.script import LOOP, Loop, Script, decoded, is_method, parse
from traincheck_instrument.source.tracking import (
    BoundNames,
    Tracked,
    bound_names,
    tracked_assignments,
)
from traincheck_instrument.source.training import Reach, training_loops
from traincheck_instrument.source.values import Instance, Meanings

if TYPE_CHECKING:
    from types import CodeType

_HEADER = """\
# What TrainCheck ran in place of {filename}: the same program, with its marks put in.
# For people to read; the program ran under its own name, with its own line numbers.

"""
_UNSHOWN = """\
# {filename}, as it stands: it cannot be shown with its marks, its expressions are nested too deep.

"""


@attrs.frozen(kw_only=True)
class FoundLoop:
    """A loop that is marked."""

    file: str
    line: int
    kind: Literal["training", "evaluation"]
    accumulating: bool = False


@attrs.frozen(kw_only=True)
class FoundName:
    """An assignment that is tracked."""

    line: int
    name: str


@attrs.frozen(kw_only=True)
class Findings:
    """What was found in a script, in the order of its lines."""

    loops: tuple[FoundLoop, ...]
    tracked: tuple[FoundName, ...]
    by_hand: frozenset[str]  # our functions that the script calls itself
    bound: BoundNames
    is_too_deep: bool = False  # nothing was found, as expressions are nested too deep to be read

    @property
    def has_marks(self) -> bool:
        """Whether anything is put into the script."""
        return bool(self.loops or self.tracked)


_NOTHING_FOUND = Findings(
    loops=(), tracked=(), by_hand=frozenset(), bound=BoundNames((), ()), is_too_deep=True
)


@attrs.frozen(kw_only=True, eq=False)
class Rewritten:
    """A script with its marks."""

    tree: ast.Module | None  # None where it cannot be read
    source: str | bytes
    filename: str
    findings: Findings

    def names_left(self, models: Sequence[str]) -> tuple[str, ...]:
        """Return those of the names to track that nothing is assigned to here."""
        found = {one.name for one in self.findings.tracked}
        return tuple(name for name in models if name not in found)

    def code(self) -> CodeType:
        """Compile it under the user's file name."""
        if self.tree is None:
            return compile(self.source, self.filename, "exec", dont_inherit=True)
        with deep_recursion():
            return compile(self.tree, self.filename, "exec", dont_inherit=True)

    def text(self) -> str:
        """Return it as source, without the user's comments."""
        try:
            with deep_recursion():
                shown = ast.unparse(self.tree) if self.tree else None
        except RecursionError:
            shown = None
        if shown is None:
            return _UNSHOWN.format(filename=self.filename) + decoded(self.source)
        return _HEADER.format(filename=self.filename) + shown + "\n"


def rewrite(
    source: str | bytes,
    filename: str,
    models: Sequence[str],
    *,
    by_hand: Collection[str] = (),
    is_module: bool = False,
) -> Rewritten:
    """Put the marks into a script.

    Args:
        source: The script; bytes are decoded as its encoding line says.
        filename: What its code is compiled under.
        models: Names to track at each assignment, as `model` or `self.model`.
        by_hand: Our functions that other files of the program call themselves.
        is_module: It is imported by the script: only what is sure is marked.

    Raises:
        ConfigError: it is no Python.
    """
    tree, findings = None, _NOTHING_FOUND
    with contextlib.suppress(RecursionError, MemoryError):  # the parser raises the latter
        script = parse(source, filename)
        with deep_recursion():
            findings = _mark(script, models, frozenset(by_hand), is_module=is_module)
        tree = script.tree
    return Rewritten(tree=tree, source=source, filename=filename, findings=findings)


def _mark(
    script: Script, models: Sequence[str], by_hand: frozenset[str], *, is_module: bool
) -> Findings:
    """Put the marks into the tree of a script."""
    meanings = Meanings(script)
    reach = Reach(meanings)
    own = marks.marks_by_hand(script)
    by_hand |= own
    bound = bound_names(script, meanings)
    training = training_loops(script, meanings, reach, backward_counts=not is_module)
    # In a file that trains nothing, `validate` may be about anything.
    trusts_names = bool(training) or not is_module
    evaluation = evaluation_loops(
        script, meanings, reach, frozenset(training), trusts_names=trusts_names
    )
    plan = _Plan(
        training={} if by_hand & marks.BEGIN_STEPS else training,
        evaluation=frozenset() if "start_eval_step" in by_hand else evaluation,
        tracked=[] if "track" in by_hand else list(tracked_assignments(script, models)),
        stages=[] if "annotate_stage" in by_hand else list(_training_modes(script, meanings)),
        marks_stages=by_hand.isdisjoint(marks.BEGIN_STAGES),
        starts={loop: first_of_work(script, meanings, loop) for loop in training},
    )
    findings = plan.findings(script.filename, own, bound)
    plan.apply(script.tree)
    return findings


@attrs.frozen(kw_only=True, eq=False)
class _Plan:
    """What is to be put in, and where."""

    training: Mapping[Loop, bool]
    starts: Mapping[Loop, ast.stmt | None]  # of each: what its mark stands before, if not first
    evaluation: frozenset[Loop]
    tracked: Sequence[Tracked]
    stages: Collection[ast.stmt]  # after which training begins
    marks_stages: bool

    def findings(self, filename: str, by_hand: frozenset[str], bound: BoundNames) -> Findings:
        """Tell what was found."""
        loops = [
            FoundLoop(file=filename, line=loop.lineno, kind="training", accumulating=conditional)
            for loop, conditional in self.training.items()
        ]
        loops += [
            FoundLoop(file=filename, line=loop.lineno, kind="evaluation")
            for loop in self.evaluation
        ]
        names = [FoundName(line=one.statement.lineno, name=one.name) for one in self.tracked]
        return Findings(
            loops=tuple(sorted(loops, key=lambda loop: loop.line)),
            tracked=tuple(sorted(names, key=lambda name: name.line)),
            by_hand=by_hand,
            bound=bound,
        )

    def apply(self, tree: ast.Module) -> None:
        """Change the tree."""
        after = self._track()
        for node in list(ast.walk(tree)):
            if isinstance(node, LOOP):
                self._mark_loop(node)
        for node in list(ast.walk(tree)):
            for name, block in ast.iter_fields(node):
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(node, name, list(self._with_marks(block, after)))
        _insert_import(tree)

    def _track(self) -> Mapping[ast.stmt, Sequence[ast.stmt]]:
        """Track where values are bound; return what is to stand after which other statements."""
        after: defaultdict[ast.stmt, list[ast.stmt]] = defaultdict(list)
        for binder, name in dict.fromkeys((one.binder, one.name) for one in self.tracked):
            if binder is not None:
                marks.track_value(binder, name)
        for one in reversed(self.tracked):
            if one.binder is None:
                mark = marks.track_mark(one)
                if isinstance(one.statement, (ast.With, ast.AsyncWith, *LOOP)):
                    one.statement.body.insert(0, mark)
                else:
                    after[one.statement].insert(0, mark)
        return after

    def _mark_loop(self, loop: Loop) -> None:
        if loop in self.training:
            start = self.starts[loop]
            near = start or loop.body[0]
            at = loop.body.index(start) if start else 0
            loop.body.insert(at, marks.step_mark(near, accumulating=self.training[loop]))
        elif loop in self.evaluation:
            loop.body.insert(0, marks.eval_step_mark(loop.body[0]))

    def _with_marks(
        self, block: Sequence[ast.stmt], after: Mapping[ast.stmt, Sequence[ast.stmt]]
    ) -> Iterator[ast.stmt]:
        for statement in block:
            if statement in self.evaluation and self.marks_stages:
                yield marks.evaluation_block(statement)
            else:
                yield statement
            yield from after.get(statement, ())
            if statement in self.stages:
                yield marks.stage_mark(statement, "training")


def _training_modes(script: Script, meanings: Meanings) -> Iterator[ast.stmt]:
    """Yield the statements that put a model into training mode: `model.train()`."""
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Expr) and mode_set_by(node) == "train":
            call = node.value
            assert isinstance(call, ast.Call)  # noqa: S101  for the type checker
            function = script.function_around(node)
            is_override = function is not None and is_method(script, function)
            is_override = is_override and function is not None and function.name == "train"
            if not is_override and not _runs_training(script, meanings, call):
                yield node


def _runs_training(script: Script, meanings: Meanings, call: ast.Call) -> bool:
    """Whether `X.train()` is a training run: that of a trainer, not of a module."""
    assert isinstance(call.func, ast.Attribute)  # noqa: S101  for the type checker
    receiver = call.func.value
    if _is_trainer(script, receiver):
        return True
    classes = [value.cls for value in meanings.of(receiver) if isinstance(value, Instance)]
    if isinstance(receiver, ast.Name) and receiver.id == "self":
        around = script.class_around(receiver)
        classes += [around] if around else []
    return any(script.method(cls, "train") and not script.is_module_class(cls) for cls in classes)


def _is_trainer(script: Script, receiver: ast.expr) -> bool:
    """Whether an object is a trainer, by its name or by that of what it is made by."""
    spelled = ast.unparse(receiver)
    names = [spelled]
    for node in ast.walk(script.tree):
        match node:
            case ast.Assign(targets=targets, value=ast.Call(func=maker)):
                if spelled in map(ast.unparse, targets):
                    names.append(script.dotted(maker) or "")
    return any("trainer" in name.lower() for name in names)


def _insert_import(tree: ast.Module) -> None:
    """Put the import after the docstring and the imports from `__future__`."""
    at = 0
    if ast.get_docstring(tree, clean=False) is not None:
        at = 1
    for index, statement in enumerate(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            at = index + 1
    if tree.body:
        near = tree.body[min(at, len(tree.body) - 1)]
        tree.body.insert(at, marks.import_mark(near))
