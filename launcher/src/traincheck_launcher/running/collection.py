"""One collection: check the input, prepare the folder, run the program, say what came of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_instrument.entry import ARGV0
from traincheck_instrument.settings import RecordingSettings
from traincheck_launcher.output.environment import describe
from traincheck_launcher.output.folder import OutputFolder, default_name
from traincheck_launcher.preparing.preparation import prepare
from traincheck_launcher.telling.aftermath import aftermath
from traincheck_trace_schema.cli import say, warn
from traincheck_trace_schema.errors import EXIT_CLEAN, ConfigError
from traincheck_trace_schema.files import write_atomically
from traincheck_trace_schema.plan_file import write_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_launcher.options import CollectOptions
    from traincheck_launcher.preparing.preparation import Preparation

_SITE_HOOK = Path(__file__).parents[1] / "site_hook"
_ENTRY = """\
# Runs {script!r} under TrainCheck. Written by traincheck-collect.

from pathlib import Path

from traincheck_instrument.entry import run_program

run_program(str(Path(__file__).with_name({settings!r})))
"""


def collect(options: CollectOptions, command: tuple[str, ...]) -> int:
    """Run a program and record it.

    Args:
        options: What is asked for.
        command: The command line, as the user typed it, for the record.

    Returns:
        The program's own exit code.

    Raises:
        ConfigError: something in the options cannot be used; nothing was run.
        InvariantError: an invariant file cannot be read.
    """
    prepared = prepare(options)
    folder = OutputFolder((options.output_dir or Path(default_name(options.pyscript))).absolute())
    _check_text("--pyscript", options.pyscript.absolute())
    _check_text("--output-dir", folder.path)
    folder.prepare(overwrite=options.overwrite)
    _write_inputs(folder, options, prepared)
    environment = _environment(folder, options)
    dump = describe(command, os.environ)
    folder.environment.write_text(dump, encoding="utf-8", errors="backslashreplace")
    from traincheck_launcher.running.child import run_child  # noqa: PLC0415  not for --explain

    if prepared.wants_variables and not (options.models or prepared.tracks):
        warn("no parameters are recorded: name the script's model with --models-to-track")
    code = run_child(_argv(folder, options), env=environment, log=folder.program_output)
    for line in aftermath(folder, options, prepared, code):
        click.echo(line, err=True)
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


def _write_inputs(folder: OutputFolder, options: CollectOptions, prepared: Preparation) -> None:
    if prepared.plan is not None:
        write_plan(folder.plan, prepared.plan)
    RecordingSettings(
        script=options.pyscript.absolute(),
        output_dir=folder.path,
        run_id=prepared.run_id,
        models=options.models,
        plan_path=None if prepared.plan is None else folder.plan,
        modules=prepared.modules,
        with_private=prepared.with_private,
        with_descriptors=options.with_descriptors,
        with_stacks=options.with_stacks,
        tracker=prepared.tracker,
        sampling=options.sampling,
        tensor_format=options.tensor_format,
        max_trace_bytes=options.max_trace_bytes,
        gzip=options.gzip,
        steps_from=prepared.program.steps_from,
        watches_evaluation=prepared.tracks and not prepared.program.marks_evaluation,
        by_hand=tuple(sorted(prepared.program.by_hand)),
    ).write(folder.settings)
    write_atomically(folder.rewritten(options.pyscript), prepared.program.script.text())
    entry = _ENTRY.format(script=options.pyscript.name, settings=folder.settings.name)
    write_atomically(folder.entry, entry)


def _environment(folder: OutputFolder, options: CollectOptions) -> Mapping[str, str]:
    """Return the environment of the program: the user's, and what leads to the entry script."""
    added = {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1")}
    if options.shscript is None:
        added[ARGV0] = str(options.pyscript)
    else:
        path = os.environ.get("PYTHONPATH")
        added["PYTHONPATH"] = os.pathsep.join([str(_SITE_HOOK), *([path] if path else [])])
        added["TRAINCHECK_SCRIPT"] = str(options.pyscript.absolute())
        added["TRAINCHECK_ENTRY"] = str(folder.entry)
    return {**os.environ, **added}


def _argv(folder: OutputFolder, options: CollectOptions) -> list[str]:
    if options.shscript is None:
        return [sys.executable, str(folder.entry), *options.arguments]
    return ["bash", str(options.shscript), *options.arguments]
