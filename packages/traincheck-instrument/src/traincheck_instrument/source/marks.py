"""The statements that are put into a script, and those that its author put there by hand."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from traincheck_instrument.source.script import FUNCTION

if TYPE_CHECKING:
    from traincheck_instrument.source.script import Script
    from traincheck_instrument.source.tracking import Binder, Tracked

MODULE = "traincheck_instrument"
_ALIAS = "__traincheck__"  # ends in underscores: not mangled inside classes
BEGIN_STEPS = frozenset({"start_step", "training_step"})
BEGIN_STAGES = frozenset({"annotate_stage", "evaluation"})
_BY_HAND = frozenset({*BEGIN_STEPS, *BEGIN_STAGES, "start_eval_step", "track"})


def marks_by_hand(script: Script) -> frozenset[str]:
    """Return which of our functions the script calls itself."""
    called = {
        script.dotted(node.func) for node in ast.walk(script.tree) if isinstance(node, ast.Call)
    }
    for function in ast.walk(script.tree):
        if isinstance(function, FUNCTION):
            called.update(map(script.dotted, function.decorator_list))
    return frozenset(name for name in _BY_HAND if f"{MODULE}.{name}" in called)


def import_mark(near: ast.stmt) -> ast.stmt:
    """Make the import that the other marks rely on."""
    return _at(near, f"import {MODULE} as {_ALIAS}")


def step_mark(near: ast.stmt, *, accumulating: bool) -> ast.stmt:
    """Make the mark of a training step."""
    arguments = "accumulating=True" if accumulating else ""
    return _at(near, f"{_ALIAS}.start_step({arguments})")


def eval_step_mark(near: ast.stmt) -> ast.stmt:
    """Make the mark of an evaluation step."""
    return _at(near, f"{_ALIAS}.start_eval_step()")


def stage_mark(near: ast.stmt, stage: str) -> ast.stmt:
    """Make the mark of a stage."""
    return _at(near, f"{_ALIAS}.annotate_stage({stage!r})")


def track_mark(tracked: Tracked) -> ast.stmt:
    """Make the statement that tracks what was just assigned."""
    target = copy.deepcopy(tracked.target)
    target.ctx = ast.Load()
    return ast.copy_location(ast.Expr(_track_call(target, tracked.name)), tracked.statement)


def track_value(binder: Binder, name: str) -> None:
    """Track what is bound, without reading it back: that might call, or raise."""
    assert binder.value is not None  # noqa: S101  for the type checker; nothing else is bound
    binder.value = _track_call(binder.value, name)


def _track_call(value: ast.expr, name: str) -> ast.Call:
    call = ast.parse(f"{_ALIAS}.track(None, name={name!r})", mode="eval").body
    assert isinstance(call, ast.Call)  # noqa: S101  for the type checker; it is spelled above
    for node in ast.walk(call):
        ast.copy_location(node, value)
    call.args = [value]
    return call


def evaluation_block(loop: ast.stmt) -> ast.stmt:
    """Put a loop into the block that makes it an evaluation."""
    block = _at(loop, f"with {_ALIAS}.evaluation(): pass")
    assert isinstance(block, ast.With)  # noqa: S101  for the type checker; it is spelled above
    block.body = [loop]
    return block


def _at(near: ast.stmt, text: str) -> ast.stmt:
    """Parse a statement that claims to stand where `near` stands, for tracebacks."""
    (statement,) = ast.parse(text).body
    for node in ast.walk(statement):
        ast.copy_location(node, near)
    return statement
