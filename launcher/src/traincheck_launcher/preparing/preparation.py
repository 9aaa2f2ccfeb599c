"""What is found out before anything runs: is the input sound, and what will be recorded."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.api.scope import MAIN
from traincheck_instrument.settings import Tracker
from traincheck_instrument.source import Program
from traincheck_launcher.preparing.modules import TORCH, ModuleFinder, modules_of
from traincheck_launcher.preparing.program import read_program
from traincheck_launcher.preparing.tracker_choice import tracker_for, what_is_unseen
from traincheck_launcher.starting.choice import way_of
from traincheck_trace_schema.cli import warn
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.plan import Plan

if TYPE_CHECKING:
    from traincheck_launcher.options import CollectOptions
    from traincheck_launcher.preparing.selection import Selection


@attrs.frozen(kw_only=True)
class Preparation:
    """What is known before anything runs."""

    program: Program
    plan: Plan | None  # None: everything public is recorded
    tracker: Tracker | None  # None: no variables are recorded
    modules: tuple[str, ...]
    with_private: bool
    run_id: str = attrs.field(factory=lambda: uuid.uuid4().hex)

    @property
    def wants_variables(self) -> bool:
        """Whether variables of models are to be recorded."""
        return self.plan is None or bool(self.plan.variables)

    @property
    def tracks(self) -> bool:
        """Whether a model is tracked, as far as can be seen in the program."""
        return "track" in self.program.by_hand or any(
            file.findings.tracked for file in self.program.files
        )


def prepare(options: CollectOptions) -> Preparation:
    """Check what can be checked without running anything.

    Raises:
        ConfigError: something in the options cannot be used.
        InvariantError: an invariant file cannot be read.
    """
    if options.with_private and options.invariants:
        raise ConfigError(
            "--use-full-instr records all that there is, --invariants only what these need; "
            "leave out one of them"
        )
    finder = ModuleFinder(options.import_folder)
    finder.check(options.modules)
    selection = _selection(options)
    plan = None if selection is None else selection.plan
    modules = modules_of(options.modules, plan, finder)
    packages = [name for name in modules if name not in {TORCH, MAIN}]
    program = read_program(options.pyscript, options.models, packages, options.import_name)
    way_of(options).check()
    if options.tracker is not None and (unseen := what_is_unseen(options.tracker, selection)):
        warn(f"--model-tracker-style {options.tracker}: {unseen}")
    return Preparation(
        program=program,
        plan=plan,
        tracker=options.tracker or tracker_for(plan),
        modules=modules,
        with_private=options.with_private or names_private(plan),
    )


def names_private(plan: Plan | None) -> bool:
    """Whether a plan names functions that are not public, so that they have to be looked for.

    What was learnt with `--use-full-instr` does.
    """
    functions = () if plan is None else plan.functions or ()
    parts = {part for function in functions for part in function.name.split(".")}
    return any(part.startswith("_") and not part.endswith("__") for part in parts)


def _selection(options: CollectOptions) -> Selection | None:
    if not options.invariants:
        return None
    from traincheck_launcher.preparing.selection import select  # noqa: PLC0415  only for selective runs

    return select(options.invariants)
