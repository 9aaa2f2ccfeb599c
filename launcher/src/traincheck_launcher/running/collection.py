"""One collection: check the input, prepare the folder, run the program, say what came of it."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from traincheck_instrument.settings import RecordingSettings
from traincheck_launcher.live.check import checked
from traincheck_launcher.live.command import require_checker
from traincheck_launcher.live.output import LiveOutput
from traincheck_launcher.output.copies import copy_files
from traincheck_launcher.output.entering import entered, joined, wait_until_last
from traincheck_launcher.output.environment import describe
from traincheck_launcher.output.folder import OutputFolder, default_name, from_here
from traincheck_launcher.output.latest import point_to_latest
from traincheck_launcher.preparing.preparation import prepare
from traincheck_launcher.starting.choice import way_of
from traincheck_launcher.starting.entry_script import entry_script
from traincheck_launcher.starting.launch import launch_of
from traincheck_launcher.starting.shell_script import SITE_HOOK
from traincheck_launcher.telling.aftermath import aftermath
from traincheck_trace_schema.cli import say, warn
from traincheck_trace_schema.errors import EXIT_CLEAN, ConfigError
from traincheck_trace_schema.files import write_atomically
from traincheck_trace_schema.plan_file import write_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traincheck_launcher.options import CollectOptions
    from traincheck_launcher.output.occupancy import Occupancy
    from traincheck_launcher.preparing.preparation import Preparation
    from traincheck_launcher.starting.launch import Launch
    from traincheck_launcher.starting.way import Way


def collect(
    options: CollectOptions, command: tuple[str, ...], job: OutputFolder | None = None
) -> int:
    """Run a program and record it.

    Args:
        options: What is asked for.
        command: The command line, as the user typed it, for the record.
        job: The folder of a larger job in which this is the last step, if it was named by default.

    Returns:
        The program's own exit code; if that is 0 and the run was checked meanwhile, the check's.

    Raises:
        ConfigError: something in the options cannot be used; nothing was run.
        InvariantError: an invariant file cannot be read.
    """
    require_checker(options)
    if options.only_instr and options.checks:
        raise ConfigError("--only-instr: nothing is run, so there is nothing to --check")
    way, launch = way_of(options), launch_of(options, os.environ)
    name = options.output_dir or Path(default_name(options.program, launch.suffix))
    folder = OutputFolder(name.absolute())
    named_by_default = folder if options.output_dir is None else job
    _check_text("--pyscript", options.pyscript.absolute())
    _check_text("--output-dir", folder.path)
    if options.only_instr and not launch.leads:
        return EXIT_CLEAN
    if not launch.leads:  # another rank checks everything, and writes what is needed
        with joined(folder, launch):
            return _run(way, launch, folder)
    prepared = attrs.evolve(prepare(options), run_id=launch.run_id)

    live = LiveOutput(folder.path)
    # Of machines, the one that comes first; of commands that torchrun has started, rank 0's.
    checks_here = launch.waits and launch.tells

    def write() -> None:
        nonlocal checks_here
        checks_here = checks_here or not launch.waits
        if options.checks:
            live.begin()
        _write(folder, options, prepared, command)
        way.write(folder.entry)
        if named_by_default is not None:
            point_to_latest(named_by_default.path)

    with (
        entered(folder, launch, overwrite=options.overwrite, write=write) as occupancy,
        checked(options, live, launch.run_id, is_here=checks_here) as check,
    ):
        if options.only_instr:
            click.echo(f"traincheck: {_how_to_run(way, folder)}", err=True)
            return EXIT_CLEAN
        code = _run(way, launch, folder, on_start=check.watch)
        ending = check.finish(code, occupancy.is_last)
        for line in ending.lines():
            click.echo(line, err=True)
        tell = partial(aftermath, folder, options, prepared, code)
        for line in _told(launch, occupancy, tell, code):
            click.echo(line, err=True)
    return ending.code


def _how_to_track(options: CollectOptions) -> str:
    if options.tracks_by_hand:
        return "--no-auto-var-instr: the program calls traincheck_instrument.track(model) nowhere"
    return "name the script's model with --models-to-track"


def _how_to_run(way: Way, folder: OutputFolder) -> str:
    """Say how to run what was written, for a shell."""
    variables = [f"{name}={value}" for name, value in way.environment(folder.entry).items()]
    command = shlex.join(["env", *variables, *way.argv(folder.entry)])
    return f"nothing was run; to run and record it: {command}"


def _told(
    launch: Launch, occupancy: Occupancy, tell: Callable[[], Iterable[str]], code: int
) -> Iterable[str]:
    """Return what this command tells in the end, of those that take part in the run."""
    if not launch.tells:
        return ()
    if launch.waits and not code:
        wait_until_last(occupancy)
    if launch.waits or occupancy.is_last_to_end():
        return tell()
    return ("traincheck: this run goes on elsewhere; who ends last tells what was recorded",)


def _run(
    way: Way, launch: Launch, folder: OutputFolder, on_start: Callable[[], None] = lambda: None
) -> int:
    """Run the program, and return its exit code.

    Raises:
        ConfigError: it was never started, although nothing failed.
    """
    # Not for --explain.
    from traincheck_launcher.running.child import run_child  # noqa: PLC0415
    from traincheck_launcher.running.left_running import LeftRunning  # noqa: PLC0415

    environment = {
        "PYTHONUNBUFFERED": "1",
        **os.environ,
        **way.environment(folder.entry),
    }
    code = run_child(
        way.argv(folder.entry),
        env=environment,
        log=folder.output_of(launch.part),
        on_start=on_start,
        on_end=LeftRunning(folder.path).wait if way.may_leave else None,
    )
    if not code and (why := way.why_not_started(folder.entry)) is not None:
        raise ConfigError(f"nothing was recorded: {why}")
    return code


def explain_only(options: CollectOptions, *, is_verbose: bool) -> int:
    """Print what would be done, and run nothing.

    Raises:
        ConfigError, InvariantError: as for `collect`.
    """
    from traincheck_launcher.explaining.explain import explain  # noqa: PLC0415  only here

    prepared = prepare(options)
    for line in explain(options, prepared, is_verbose=is_verbose):
        say(line)
    return EXIT_CLEAN


def _check_text(option: str, path: Path) -> None:
    """Make sure that the settings file, which is UTF-8, can hold a path."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise ConfigError(f"{option}: {shown} is not UTF-8; rename what is not") from error


def _write(
    folder: OutputFolder,
    options: CollectOptions,
    prepared: Preparation,
    command: tuple[str, ...],
) -> None:
    """Write what is there before the program runs."""
    dump = describe(command, os.environ, options.configured)
    folder.environment.write_text(dump, encoding="utf-8", errors="backslashreplace")
    if options.copies_files:
        source = options.pyscript.absolute().parent
        copies = copy_files(source, folder.copies, folder.manifest)
        click.echo(f"traincheck: {copies.told(from_here(folder.copies))}", err=True)
    _write_inputs(folder, options, prepared)
    if prepared.wants_variables and not (options.models or prepared.tracks):
        warn(f"no parameters are recorded: {_how_to_track(options)}")


def _write_inputs(folder: OutputFolder, options: CollectOptions, prepared: Preparation) -> None:
    if prepared.plan is not None:
        write_plan(folder.plan, prepared.plan)
    write_atomically(folder.rewritten(options.pyscript), prepared.program.script.text())
    write_atomically(folder.entry, entry_script(options.pyscript, folder.settings))
    RecordingSettings(
        script=options.pyscript.absolute(),
        module=options.module,
        output_dir=folder.path,
        run_id=prepared.run_id,
        models=options.models,
        plan_path=None if prepared.plan is None else folder.plan,
        modules=prepared.modules,
        with_private=prepared.with_private,
        with_descriptors=options.with_descriptors,
        with_stacks=options.with_stacks,
        site_hook=SITE_HOOK if options.follows_subprocesses else None,
        tracker=prepared.tracker,
        sampling=options.sampling,
        tensor_format=options.tensor_format,
        max_trace_bytes=options.max_trace_bytes,
        gzip=options.gzip,
        steps_from=prepared.program.steps_from,
        watches_evaluation=prepared.tracks and not prepared.program.marks_evaluation,
        by_hand=tuple(sorted(prepared.program.by_hand)),
        guard=LiveOutput(folder.path).guard(options),
    ).write(folder.settings)  # last: with them, all is there
