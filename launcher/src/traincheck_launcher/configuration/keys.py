"""The keys of a config file: those of a command's options, with underscores."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ARGUMENTS = "arguments"  # of the program: what stands behind `--` on the command line

# Not options of the run, and what is said if one stands in the file all the same.
NOT_IN_A_FILE: Mapping[str, str] = {
    "config": "is for the command line: it names this file",
    "use_config": "is for the command line: it says that this file is used",
    "help": "is for the command line",
    "version": "is for the command line",
    "enable_C_level_observer": "belongs to TrainCheck 0.1 and is gone: calls of C functions are "
    "recorded with instr_descriptors; take the line out",
}


def key_of(option: click.Option) -> str:
    """Return the key of an option: its first long spelling, with underscores."""
    spelled = next(name for name in option.opts if name.startswith("--"))
    return spelled.removeprefix("--").replace("-", "_")


def keys_of(params: Iterable[click.Parameter]) -> dict[str, click.Option]:
    """Return the options that a config file may set, by their keys."""
    options = (param for param in params if isinstance(param, click.Option))
    keyed = {key_of(option): option for option in options}
    return {key: option for key, option in keyed.items() if key not in NOT_IN_A_FILE}


def why_unknown(key: str, known: Iterable[str]) -> str:
    """Say why a key is none, and which was meant."""
    names = [*known, ARGUMENTS]
    if (right := key.replace("-", "_")) in names:
        return f"{key!r} is spelled with underscores: {right}"
    if right in NOT_IN_A_FILE:
        return f"{key!r} {NOT_IN_A_FILE[right]}"
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(right.lower(), by_lower, n=1)
    if close:
        return f"there is no option {key!r}; did you mean {by_lower[close[0]]}?"
    return f"there is no option {key!r}; 'traincheck config init' writes a file with all of them"
