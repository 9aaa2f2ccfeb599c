"""The program that is to be recorded: reads it, and checks what the user says about it."""

from __future__ import annotations

import difflib
import warnings
from typing import TYPE_CHECKING

import click

from traincheck_instrument import source
from traincheck_instrument.program.marked_main import full_name
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NO_TRAINING_LOOP = (
    "mark the loop by hand, in the file that holds it: put 'import traincheck_instrument' at its "
    "top and 'traincheck_instrument.start_step()' first into the loop's body"
)
_SHOWN = 8  # names listed in a message
_TOO_DEEP = (
    "an expression is nested too deep, so that no loop and no model could be looked for; shorten "
    f"it (put its parts into variables), or {NO_TRAINING_LOOP}"
)


def read_program(
    script: Path, models: Sequence[str], packages: Sequence[str], module: str | None = None
) -> source.Program:
    """Read a program and put its marks in.

    Args:
        script: Its script.
        models: Names to track.
        packages: What is recorded beside torch: if it is the user's own, it is read too.
        module: The name that the script is run by, if it runs as a module.

    Raises:
        ConfigError: it cannot be read, is no Python, or assigns a name to track nowhere.
    """
    try:
        text = script.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(f"--pyscript: there is no file {script}") from error
    except IsADirectoryError as error:
        raise ConfigError(
            f"--pyscript: {script} is a folder; name the script that is run"
        ) from error
    except OSError as error:
        raise ConfigError(f"--pyscript: {script} cannot be read: {error.strerror}") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the program shows its own when it runs
        name = None if module is None else full_name(module, str(script))
        program = source.read_program(text, script, models, packages, module=name)
        _insist_on_code(text, script)
    if program.script.findings.is_too_deep:
        click.echo(f"warning: {script}: {_TOO_DEEP}", err=True)
    elif "track" not in program.by_hand:
        found = {each.name for file in program.files for each in file.findings.tracked}
        for name in models:
            if name not in found:
                raise ConfigError(_unbound(name, script, program.script.findings.bound))
    return program


def _insist_on_code(text: bytes, script: Path) -> None:
    """Refuse what parses and is no program, as `return` outside of a function."""
    try:
        compile(text, str(script), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ConfigError(f"{script}:{error.lineno}: SyntaxError: {error.msg}") from error
    except (RecursionError, MemoryError):
        return  # nested too deep for here: the program may be run with more room


def _unbound(name: str, script: Path, bound: source.BoundNames) -> str:
    close = difflib.get_close_matches(name, [*bound.modules, *bound.others], n=1)
    guess = f"; did you mean {close[0]!r}?" if close else "."
    if bound.modules:
        binds = f"It binds modules to: {_listed(bound.modules)}"
    elif bound.others:
        binds = f"It seems to bind no module, only: {_listed(bound.others)}"
    else:
        binds = "It binds no names at all"
    return f"--models-to-track: {script} assigns nothing to {name!r}{guess} {binds}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
