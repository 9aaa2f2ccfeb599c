"""The config file that `traincheck config init` writes: every key, what it means, its default."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from traincheck_launcher.configuration.keys import ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_launcher.configuration.values_in_use import ValueInUse

_WIDTH = 96
_HEAD = """\
# What traincheck-collect is told. Use it with: traincheck-collect --config {name}
# A line that begins with '#' and a key shows a default; take the '#' away to set it. Relative
# paths are relative to this file. What the command line says wins; 'traincheck config show
# --config {name}' tells what is used.
"""
_OF_PROGRAM = "The words that the program gets, as behind -- on the command line."
_OF_TORCHRUN = "See torchrun --help."
_REST = "Other"


def template(
    values: Sequence[ValueInUse], groups: Mapping[str, Sequence[str]], path: Path
) -> Iterator[str]:
    """Yield the lines of the file.

    Args:
        values: All options; those that somebody has set are set in the file too.
        groups: Titles, each with the names of its options' parameters.
        path: Where the file is to lie.
    """
    yield from _HEAD.format(name=path).splitlines()
    left = {_name(value): value for value in values}
    for title, names in groups.items():
        members = [left.pop(name) for name in names if name in left]
        if "pyscript" in names:
            members.append(left.pop(ARGUMENTS))
        yield from _section(title, members, path)
    yield from _section(_REST, list(left.values()), path)


def _name(value: ValueInUse) -> str:
    return ARGUMENTS if value.option is None else str(value.option.name)


def _section(title: str, values: Sequence[ValueInUse], path: Path) -> Iterator[str]:
    if not values:
        return
    yield from ("", f"# ---- {title} ".ljust(_WIDTH, "-"))
    for value in values:
        yield ""
        yield from (f"# {line}" for line in textwrap.wrap(_meaning(value), _WIDTH))
        line = _seen_from(path, value).line()
        yield line if value.is_set else f"#{line}"


def _meaning(value: ValueInUse) -> str:
    option = value.option
    if option is None:
        return _OF_PROGRAM
    choices = ""
    if isinstance(option.type, click.Choice):
        choices = f" One of: {', '.join(map(str, option.type.choices))}."
    return f"{' '.join((option.help or _OF_TORCHRUN).split())}{choices}"


def _seen_from(path: Path, value: ValueInUse) -> ValueInUse:
    """Return a value whose relative paths are relative to the file."""
    if value.option is None or not isinstance(value.option.type, click.Path) or not value.is_set:
        return value
    if isinstance(value.value, list):
        return attrs.evolve(value, value=[_relative(each, path) for each in value.value])
    return attrs.evolve(value, value=_relative(str(value.value), path))


def _relative(text: str, path: Path) -> str:
    return text if Path(text).is_absolute() else os.path.relpath(text, path.parent)
