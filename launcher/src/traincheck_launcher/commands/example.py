"""The command `traincheck example`: the whole way, from a good run to a caught bug."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sysconfig
import time
from importlib.util import find_spec
from pathlib import Path

import attrs
import click

from traincheck_trace_schema.cli import TraincheckCommand
from traincheck_trace_schema.errors import EXIT_CLEAN, EXIT_VIOLATIONS, ConfigError

_PROGRAMS = Path(__file__).parents[1] / "example"
_FAILED = 1
_INSTALL = "pip install 'traincheck-launcher[example]'"


@attrs.frozen
class _Stage:
    """A command of the way, and the exit code with which it is to end."""

    title: str
    command: tuple[str, ...]
    expected: int = EXIT_CLEAN


@click.command(cls=TraincheckCommand)
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    default=Path("traincheck_example"),
    show_default=True,
    metavar="DIR",
    help="Where everything goes; what an earlier run left there is replaced.",
)
def example(*, output_dir: Path) -> int:
    """Catch a planted silent bug, to see how TrainCheck works.

    Trains a small network on pictures of digits, learns what is normal, trains a twin whose
    classifier head was frozen by mistake, and checks it. Takes a minute or two. The exit code is 0
    if the bug was found.
    """
    if find_spec("sklearn") is None:
        raise ConfigError(f"the example needs scikit-learn: {_INSTALL}")
    _prepare(output_dir)
    stages = _stages(output_dir)
    for number, stage in enumerate(stages, start=1):
        code, seconds = _run(stage, f"[{number}/{len(stages)}]")
        if code != stage.expected:
            click.echo(f"error: this stage ended with exit code {code}", err=True)
            return _FAILED
        click.echo(f"      done in {seconds:.0f} s\n")
    click.echo("The planted bug was found. What was written on the way:")
    for what, name in (
        ("the programs", "digits_reference.py, digits_frozen.py"),
        ("the traces", "reference_trace, target_trace"),
        ("the invariants", "invariants.json"),
        ("the results", "results"),
    ):
        places = ", ".join(str(output_dir / one) for one in name.split(", "))
        click.echo(f"  {what + ':':16}{places}")
    return EXIT_CLEAN


def _prepare(folder: Path) -> None:
    """Put the programs into the folder, and remove what an earlier run concluded."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("digits_reference.py", "digits_frozen.py"):
            shutil.copyfile(_PROGRAMS / name, folder / name)
        (folder / "invariants.json").unlink(missing_ok=True)
        shutil.rmtree(folder / "results", ignore_errors=True)
    except OSError as error:
        raise ConfigError(f"--output-dir: {folder} cannot be used: {error.strerror}") from error


def _stages(folder: Path) -> tuple[_Stage, ...]:
    invariants, reference, target = (
        str(folder / name) for name in ("invariants.json", "reference_trace", "target_trace")
    )
    collect = ("traincheck-collect", "--models-to-track", "model", "--overwrite")
    return (
        _Stage(
            "Record the program that is right",
            (*collect, "-p", str(folder / "digits_reference.py"), "--output-dir", reference),
        ),
        _Stage(
            "Learn what always holds in it",
            ("traincheck-infer", "-f", reference, "-o", invariants),
        ),
        _Stage(
            "Record its twin, which has a silent bug",
            (
                *(*collect, "-p", str(folder / "digits_frozen.py")),
                *("--invariants", invariants, "--output-dir", target),
            ),
        ),
        _Stage(
            "Check the twin",
            ("traincheck-check", "-f", target, "-i", invariants, "-o", str(folder / "results")),
            expected=EXIT_VIOLATIONS,
        ),
    )


def _run(stage: _Stage, number: str) -> tuple[int, float]:
    name, *arguments = stage.command
    click.echo(f"{number} {stage.title}\n      $ {shlex.join(stage.command)}")
    began = time.monotonic()
    code = subprocess.call([_installed(name), *arguments])
    return code, time.monotonic() - began


def _installed(name: str) -> str:
    """Return the path of a command that is installed beside this Python."""
    path = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if path is None:
        raise ConfigError(f"{name} is not installed: {_INSTALL}")
    return path
