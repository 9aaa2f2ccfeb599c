"""One collection: check the input, prepare the folder, run the program, say what came of it."""

from __future__ import annotations

import os
import shlex
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
import click

from traincheck_instrument.entry import ARGV0
from traincheck_launcher.environment import describe
from traincheck_launcher.explain import NO_TRAINING_LOOP, explain
from traincheck_launcher.output_folder import OutputFolder, default_name
from traincheck_launcher.program import check_shell_script, read_program
from traincheck_launcher.trace_summary import summarise
from traincheck_trace_schema.errors import EXIT_CLEAN, ConfigError
from traincheck_trace_schema.files import write_atomically
from traincheck_trace_schema.records import Sampling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_instrument.source import Findings, Rewritten
    from traincheck_trace_schema.plan import Plan

_SITE_HOOK = Path(__file__).parent / "site_hook"
_ENTRY = """\
# Runs {script!r} under TrainCheck. Written by traincheck-collect.

from pathlib import Path

from traincheck_instrument.entry import run_program

run_program(str(Path(__file__).with_name({settings!r})))
"""


@attrs.frozen(kw_only=True)
class CollectOptions:
    """What the user asked for."""

    pyscript: Path
    shscript: Path | None = None
    arguments: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    output_dir: Path | None = None
    overwrite: bool = False
    invariants: tuple[Path, ...] = ()
    sampling: Sampling = attrs.field(factory=Sampling)
    tracker: Literal["subclass"] = "subclass"
    tensor_format: Literal["hash"] = "hash"
    max_trace_bytes: int | None = None
    gzip: bool = False


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
    rewritten = read_program(options.pyscript, options.models)
    if options.shscript is not None:
        check_shell_script(options.shscript)
    plan = _plan(options)
    folder = OutputFolder((options.output_dir or Path(default_name(options.pyscript))).absolute())
    _check_text("--pyscript", options.pyscript.absolute())
    _check_text("--output-dir", folder.path)
    folder.prepare(overwrite=options.overwrite)
    _write_inputs(folder, options, rewritten, plan)
    environment = _environment(folder, options)
    dump = describe(command, os.environ)
    folder.environment.write_text(dump, encoding="utf-8", errors="backslashreplace")
    from traincheck_launcher.child import run_child  # noqa: PLC0415  not for --explain

    code = run_child(_argv(folder, options), env=environment, log=folder.program_output)
    for line in _aftermath(folder, options, code):
        click.echo(line, err=True)
    return code


def explain_only(options: CollectOptions) -> int:
    """Print what would be done, and run nothing."""
    rewritten = read_program(options.pyscript, options.models)
    for line in explain(rewritten.findings, str(options.pyscript)):
        click.echo(line)
    return EXIT_CLEAN


def _plan(options: CollectOptions) -> Plan | None:
    if not options.invariants:
        return None
    from traincheck_launcher.selection import plan_of  # noqa: PLC0415  only for selective runs

    return plan_of(options.invariants)


def _check_text(option: str, path: Path) -> None:
    """Make sure that the settings file, which is UTF-8, can hold a path."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise ConfigError(f"{option}: {shown} is not UTF-8; rename what is not") from error


def _write_inputs(
    folder: OutputFolder, options: CollectOptions, rewritten: Rewritten, plan: Plan | None
) -> None:
    from traincheck_instrument.settings import RecordingSettings  # noqa: PLC0415  not for --explain
    from traincheck_trace_schema.plan_file import write_plan  # noqa: PLC0415

    if plan is not None:
        write_plan(folder.plan, plan)
    RecordingSettings(
        script=options.pyscript.absolute(),
        output_dir=folder.path,
        run_id=uuid.uuid4().hex,
        models=options.models,
        tracker=options.tracker,
        tensor_format=options.tensor_format,
        max_trace_bytes=options.max_trace_bytes,
        gzip=options.gzip,
        steps_from=_steps_from(rewritten.findings),
        plan_path=None if plan is None else folder.plan,
        sampling=options.sampling,
    ).write(folder.settings)
    write_atomically(folder.rewritten(options.pyscript), rewritten.text())
    entry = _ENTRY.format(script=options.pyscript.name, settings=folder.settings.name)
    write_atomically(folder.entry, entry)


def _steps_from(findings: Findings) -> Literal["source", "hand"] | None:
    if "start_step" in findings.by_hand:
        return "hand"
    return "source" if any(loop.kind == "training" for loop in findings.loops) else None


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


def _aftermath(folder: OutputFolder, options: CollectOptions, code: int) -> Iterator[str]:
    """Yield what is to be said when the program has ended."""
    if code:
        yield f"traincheck: the program ended with exit code {code}"
    if not any(folder.traces()):
        yield f"traincheck: no trace was written: {_why_none(options)}"
        if options.shscript is None and not code:
            yield f"warning: no training step was seen; {NO_TRAINING_LOOP}"
        return
    summary = summarise(folder.traces())
    where = _shown(folder.path)
    told = ", ".join(f"rank {rank}: {count}" for rank, count in summary.steps.items())
    yield f"traincheck: trace in {where}; training steps seen: {told or 'none'}"
    if any(summary.steps.values()):
        if not summary.has_variables and not options.invariants:
            yield f"warning: {_why_no_variables(options)}"
        yield f"traincheck: next: {_next_command(where, options)}"
    elif not code:
        yield f"warning: no training step was seen; {NO_TRAINING_LOOP}"


def _why_no_variables(options: CollectOptions) -> str:
    if not options.models:
        return "no parameters are recorded: name the script's model with --models-to-track"
    names = ", ".join(options.models)
    return f"no parameters are recorded: --models-to-track: {names} never held a torch.nn.Module"


def _next_command(where: str, options: CollectOptions) -> str:
    if not options.invariants:
        return f"traincheck-infer -f {where} -o invariants.json"
    files = " ".join(shlex.quote(str(path)) for path in options.invariants)
    return f"traincheck-check -f {where} -i {files}"


def _why_none(options: CollectOptions) -> str:
    if options.shscript is None:
        return "the program made no call that is recorded, or recording could not begin (see above)"
    return (
        f"{options.shscript} started no Python process that runs {options.pyscript} "
        "(python -I, -S and -E are not followed), or recording could not begin in it (see above)"
    )


def _shown(path: Path) -> str:
    """Return a path as short as it can be typed from here."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))
