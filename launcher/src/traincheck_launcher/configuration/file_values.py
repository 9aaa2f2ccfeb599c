"""What a config file gives to the options of a command, before click converts and checks it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from traincheck_launcher.configuration.keys import ARGUMENTS, why_unknown
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_launcher.configuration.document import Document, Entry, Scalar


@attrs.frozen(kw_only=True)
class FileValues:
    """The values of a config file, and where they stand."""

    path: Path
    values: Mapping[str, Any]  # by the names of parameters, as click's default map
    lines: Mapping[str, int]  # by the same names
    arguments: tuple[str, ...] | None = None  # of the program; None: it names none
    arguments_line: int = 0
    words: tuple[str, ...] = ()  # the file's name, and what it says

    def place(self, name: str) -> str:
        """Return the file and the line in which a parameter is set."""
        return f"{self.path}:{self.lines[name]}"


def file_values(document: Document, options: Mapping[str, click.Parameter]) -> FileValues:
    """Match the entries of a file with options; a `null` leaves one at its default.

    Args:
        document: The file.
        options: What may be set, by key.

    Raises:
        ConfigError: a key is none of them, or what stands behind it is of another kind.
    """
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    arguments, arguments_line = None, 0
    for entry in document.entries:
        where = f"{document.path}:{entry.line}"
        if entry.key == ARGUMENTS:
            arguments, arguments_line = _arguments(entry, where), entry.line
            continue
        option = options.get(entry.key)
        if option is None or option.name is None:
            raise ConfigError(f"{where}: {why_unknown(entry.key, options)}")
        value = _value(entry, option, document.path)
        if value is not None:
            values[option.name], lines[option.name] = value, entry.line
    return FileValues(
        path=document.path,
        values=values,
        lines=lines,
        arguments=arguments,
        arguments_line=arguments_line,
        words=(str(document.path), *_words(document)),
    )


def _words(document: Document) -> Iterator[str]:
    """Yield what a file says as words of a command line are."""
    for entry in document.entries:
        if isinstance(entry.value, tuple):
            yield f"{entry.key}:"
            yield from (item.text for item in entry.value)
        else:
            yield f"{entry.key}={entry.value.text}"


def _value(entry: Entry, option: click.Parameter, path: Path) -> Any:
    """Return what an entry gives to its option; None if that is to stay at its default."""
    given = entry.value
    if isinstance(given, tuple):
        if not option.multiple:
            raise ConfigError(f"{path}:{entry.line}: {entry.key} takes one value, not a list")
        return [_text(entry, item, option, path) for item in given]
    if given.kind == "empty":
        raise ConfigError(
            f"{path}:{given.line}: {entry.key} has no value; for its default, write null or take "
            "the line out"
        )
    if given.kind == "null":
        return None
    if isinstance(option, click.Option) and option.is_flag:
        if given.kind != "switch":
            raise ConfigError(
                f"{path}:{given.line}: {entry.key} must be true or false, not {given.text!r}"
            )
        return given.is_on
    text = _text(entry, given, option, path)
    return [text] if option.multiple else text


def _text(entry: Entry, item: Scalar, option: click.Parameter, path: Path) -> str:
    """Return a value as it would be typed behind the option."""
    if item.kind != "text" or not item.text:
        shown = item.text or "nothing"
        what = "a path" if isinstance(option.type, click.Path) else "a value"
        raise ConfigError(
            f"{path}:{item.line}: {entry.key} needs {what}, not {shown}; a name that is called so "
            "goes into quotes"
        )
    if isinstance(option.type, click.Path):
        return str(path.parent / os.path.expanduser(item.text))  # noqa: PTH111  where there is no home, Path raises
    return item.text


def _arguments(entry: Entry, where: str) -> tuple[str, ...] | None:
    if isinstance(entry.value, tuple):
        return tuple(item.text for item in entry.value)
    if entry.value.kind == "null":
        return None
    raise ConfigError(
        f"{where}: {ARGUMENTS} must be a list, as [--epochs, 3]: one item for each word that the "
        "program gets"
    )
