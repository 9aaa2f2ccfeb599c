"""Says, without running anything, what would be marked, tracked and recorded of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_instrument.api.scope import MAIN
from traincheck_launcher.explaining.known_functions import known_functions
from traincheck_launcher.output.folder import from_here
from traincheck_launcher.preparing.program import NO_TRAINING_LOOP
from traincheck_trace_schema.commands.screen import Screen, counted
from traincheck_trace_schema.commands.table import terminal_width
from traincheck_trace_schema.commands.trace_screen import sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_instrument.source import FoundLoop
    from traincheck_launcher.explaining.known_functions import KnownFunctions
    from traincheck_launcher.options import CollectOptions
    from traincheck_launcher.preparing.preparation import Preparation
    from traincheck_trace_schema.commands.table import Cell
    from traincheck_trace_schema.plan import FunctionPlan, Plan

_ROWS = 12


def explain(options: CollectOptions, prepared: Preparation, *, is_verbose: bool) -> Iterator[str]:
    """Yield lines for people; with `is_verbose`, all functions by name."""
    screen = Screen(terminal_width(), None if is_verbose else _ROWS, "--verbose")
    yield from _source(prepared, from_here(options.pyscript))
    yield from ("", "What would be recorded")
    known = None if prepared.plan else known_functions(options, prepared.modules)
    yield from screen.facts(
        {
            "calls": _calls(prepared.plan, prepared.modules, known),
            "variables": _variables(options, prepared),
            "steps": sampling(options.sampling),
        }
    )
    if known is None:
        yield from screen.section("Functions", ("function", "recorded"), _planned(prepared.plan))
    else:
        yield from screen.notes("note", known.problems)
        if is_verbose:
            yield from ("", "Functions", *(f"  {name}" for name in known.names))
        else:
            yield from screen.section("Functions", ("number", "module"), known.by_module())


def _source(prepared: Preparation, script: str) -> Iterator[str]:
    """Yield the loops and the assignments tracked, each with file and line."""
    program = prepared.program
    for file in program.files:
        yield from map(_loop, file.findings.loops)
    for name in sorted(program.by_hand):
        yield f"{script}: the program calls {name}() itself, so none is put in"
    if program.steps_from is None:
        yield (
            f"{script}: no training loop found; steps are counted by the calls of the model that "
            f"is tracked, or {NO_TRAINING_LOOP}"
        )
    for file in program.files:
        for tracked in file.findings.tracked:
            yield f"{from_here(file.filename)}:{tracked.line}: tracked as {tracked.name!r}"
    if not prepared.tracks:
        names = ", ".join(program.script.findings.bound.modules) or "none found"
        yield f"{script}: no model is tracked (--models-to-track); candidates: {names}"


def _loop(loop: FoundLoop) -> str:
    step = "start_step()" if loop.kind == "training" else "start_eval_step()"
    if loop.accumulating:
        step = "start_step(accumulating=True), as the optimizer steps under a condition"
    return f"{from_here(loop.file)}:{loop.line}: {loop.kind} loop: {step}"


def _calls(plan: Plan | None, modules: Sequence[str], known: KnownFunctions | None) -> str:
    if known is None:
        named = () if plan is None or plan.functions is None else plan.functions
        return f"of {counted(len(named), 'function')} that the invariants need"
    owners = ", ".join("the script" if name == MAIN else name for name in modules)
    return f"of {counted(len(known.names), 'function')} of {owners}"


def _variables(options: CollectOptions, prepared: Preparation) -> str:
    if not prepared.wants_variables:
        return "none: no invariant needs them"
    if not prepared.tracks:
        return "none: no model is tracked"
    found = [each.name for file in prepared.program.files for each in file.findings.tracked]
    names = ", ".join(dict.fromkeys(found)) or "tracked by hand"
    return f"{names}; tracker {prepared.tracker}, tensors as {options.tensor_format}"


def _planned(plan: Plan | None) -> list[Sequence[Cell]]:
    if plan is None or plan.functions is None:
        return []
    return [(function.name, ", ".join(_kept(function, plan))) for function in plan.functions]


def _kept(function: FunctionPlan, plan: Plan) -> Iterator[str]:
    """Yield what is recorded of each call."""
    yield "that it is called"
    yield from ("all arguments",) if function.arguments == "all" else function.arguments
    if function.result:
        yield "result"
    if function.name in plan.observe:
        yield "variables before and after"
    else:
        yield from ("variables before",) if function.name in plan.observe_before else ()
        yield from ("variables after",) if function.name in plan.observe_after else ()
