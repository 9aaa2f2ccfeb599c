"""The whole job of `traincheck run`: learn from a reference if there is one, train, check."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from traincheck_launcher.live.command import require_checker
from traincheck_launcher.output.folder import OutputFolder, default_name, from_here
from traincheck_launcher.running.collection import collect
from traincheck_trace_schema.errors import EXIT_CLEAN, ConfigError

if TYPE_CHECKING:
    from traincheck_launcher.options import CollectOptions

_INFER = "traincheck-infer"


@attrs.frozen
class Reference:
    """A program that does it right."""

    script: Path
    arguments: tuple[str, ...]

    @classmethod
    def of(
        cls, script: Path | None, arguments: str | None, of_program: tuple[str, ...]
    ) -> Reference | None:
        """Make it of what the command line gave; its arguments are the program's unless given.

        Raises:
            ConfigError: there are arguments, and they can't be split, or are for nobody.
        """
        if script is None:
            if arguments is not None:
                raise ConfigError("--reference-args: there is no --reference that they are for")
            return None
        try:
            return cls(script, of_program if arguments is None else tuple(shlex.split(arguments)))
        except ValueError as error:
            raise ConfigError(f"--reference-args: {arguments!r}: {error}") from error


def run_whole_job(
    options: CollectOptions, reference: Reference | None, command: tuple[str, ...]
) -> int:
    """Run a program, and check it while it goes on.

    Args:
        options: What is asked for; `output_dir` is the folder of everything.
        reference: What is learnt from, unless invariants are there.
        command: The command line, for the record.

    Raises:
        ConfigError: something in the options cannot be used, or nothing can be learnt.
        InvariantError: an invariant file cannot be read.
    """
    name = default_name(options.program, time.strftime("%Y%m%d-%H%M%S"))
    folder = options.output_dir or Path(name)
    job = OutputFolder(folder.absolute()) if options.output_dir is None else None
    if reference is None:
        if not options.invariants:
            raise ConfigError(
                "there is nothing to check it against: name invariants with --invariants, or a "
                "program that does it right with --reference"
            )
        return collect(attrs.evolve(options, output_dir=folder / "run"), command, job)
    invariants = folder / "invariants.json"
    _check(options, reference, invariants)
    infer = _installed()
    _tell(f"[1/3] recording the reference, {reference.script}")
    _record(options, reference, folder / "reference", command)
    _tell(f"[2/3] learning what always holds in it: {from_here(invariants)}")
    learning = [infer, "-f", str(folder / "reference"), "-o", str(invariants)]
    if subprocess.call(learning, stdout=sys.stderr.fileno()):  # the program's stdout is its own
        raise ConfigError(f"--reference: nothing was learnt from {reference.script} (see above)")
    _tell(f"[3/3] running {options.pyscript}, and checking it")
    learnt = attrs.evolve(options, output_dir=folder / "run", invariants=(invariants,))
    return collect(learnt, command, job)


def _check(options: CollectOptions, reference: Reference, invariants: Path) -> None:
    """Make sure, before minutes are spent on the reference, that what follows can be done."""
    if options.invariants:
        raise ConfigError(
            "--reference: --invariants names what was learnt already; give one of them"
        )
    if options.shscript is not None:
        raise ConfigError(
            "--reference: --shscript starts the program, not the reference; record that with "
            "traincheck-collect, learn with traincheck-infer, and give --invariants"
        )
    if not reference.script.is_file():
        raise ConfigError(f"--reference: there is no file {reference.script}")
    if not options.pyscript.is_file():
        raise ConfigError(f"SCRIPT: there is no file {options.pyscript}")
    if invariants.exists():
        raise ConfigError(
            f"--output-dir: {invariants} was learnt by an earlier run; use it with --invariants, "
            "or choose another folder"
        )
    require_checker(attrs.evolve(options, invariants=(invariants,)))


def _record(
    options: CollectOptions, reference: Reference, folder: Path, command: tuple[str, ...]
) -> None:
    recorded = attrs.evolve(
        options,
        pyscript=reference.script,
        module=None,
        arguments=reference.arguments,
        output_dir=folder,
        checks=False,
        baseline=None,
        on_violation="warn",
        lockstep=False,
    )
    code = collect(recorded, command)
    if code != EXIT_CLEAN:
        raise ConfigError(
            f"--reference: {reference.script} ended with exit code {code}; learn from a program "
            "that is right"
        )


def _installed() -> str:
    beside = shutil.which(_INFER, path=sysconfig.get_path("scripts"))
    found = beside or shutil.which(_INFER)
    if found is None:
        raise ConfigError(f"--reference: {_INFER} is not installed: pip install traincheck-infer")
    return found


def _tell(what: str) -> None:
    click.echo(f"traincheck: {what}", err=True)
