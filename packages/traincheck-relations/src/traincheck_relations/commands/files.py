"""Reading the invariant files that commands are given, and writing those that they make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click

from traincheck_trace_schema.cli import note
from traincheck_trace_schema.errors import ConfigError, InvariantError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_trace_schema.invariants import Invariant

ENDLESS: Final = 2**31  # columns of a line in a pipe
INVARIANT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The invariant file to write.",
)
force_option = click.option(
    "--force", is_flag=True, help="Take the place of a file that is there, also of an input."
)


def read(path: Path) -> tuple[Invariant, ...]:
    """Return the invariants of a file, and tell what is to be known about it.

    Raises:
        InvariantError: It cannot be read.
    """
    from traincheck_trace_schema.invariant_file import read_invariant_files  # noqa: PLC0415  0.1 s

    try:
        files = read_invariant_files([path])
    except InvariantError as error:
        if not str(error).startswith(f"{path}:1: "):
            raise
        raise InvariantError(f"{error}; is it a file that traincheck-infer wrote?") from error
    for text in files.notes:
        note(text)
    return files.invariants


def insist_on_place(output: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """Refuse to write where something would be lost, before any work is done.

    Raises:
        ConfigError: The file is there, or its folder is not.
    """
    if not output.parent.is_dir():
        raise ConfigError(f"{output}: its folder does not exist; make it, or choose another")
    if output.exists() and not force:
        is_input = any(output.samefile(each) for each in inputs)
        what = "is one of the files to read" if is_input else "is there already"
        raise ConfigError(f"{output}: {what}; choose another with -o, or add --force")


def write(output: Path, invariants: Sequence[Invariant]) -> None:
    """Write an invariant file, in the version that is written today.

    Raises:
        ConfigError: It cannot be written.
    """
    from traincheck_trace_schema.invariant_file import write_invariants  # noqa: PLC0415  see `read`
    from traincheck_trace_schema.invariants import VERSION  # noqa: PLC0415

    newer = sorted({each.version for each in invariants} - {VERSION})
    if newer:
        note(
            f"read version {', '.join(newer)}, written is {VERSION}: what only the newer one has "
            "is left out"
        )
    write_invariants(output, [attrs.evolve(each, version=VERSION) for each in invariants])


def tell_of_suppressions(inputs: Sequence[Path], output: Path) -> None:
    """Say that what was suppressed beside the inputs is not so beside the output."""
    from traincheck_trace_schema.suppression_file import suppression_path  # noqa: PLC0415  see `read`

    target = suppression_path(output)
    beside = dict.fromkeys(map(suppression_path, inputs))
    left = [str(each) for each in beside if each.exists() and each != target]
    if left:
        note(f"suppressions are not taken along; to do so: cat {' '.join(left)} > {target}")
