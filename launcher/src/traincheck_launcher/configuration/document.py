"""Reads the text of a config file: keys, each with its values and lines, as they are typed.

Nothing is constructed from YAML's nodes: what a text means is for the option to say. So `1:30` is
no number of seconds, an alias is one node however often it is used, and no tag makes an object.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs
import yaml

from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["text", "switch", "null", "empty"]

_MAX_BYTES = 2**20
_TAG = "tag:yaml.org,2002:"
_KINDS: dict[str, Kind] = {
    f"{_TAG}str": "text",
    f"{_TAG}int": "text",
    f"{_TAG}float": "text",
    f"{_TAG}timestamp": "text",
    f"{_TAG}bool": "switch",
    f"{_TAG}null": "null",
}
_MERGE = f"{_TAG}merge"
_TAB = "found character '\\t'"


@attrs.frozen
class Scalar:
    """One value, as it is typed."""

    text: str
    kind: Kind
    line: int

    @property
    def is_on(self) -> bool:
        """What a switch says."""
        return bool(yaml.SafeLoader.bool_values[self.text.lower()])


@attrs.frozen(kw_only=True)
class Entry:
    """A key and what stands behind it."""

    key: str
    line: int
    value: Scalar | tuple[Scalar, ...]


@attrs.frozen
class Document:
    """A config file."""

    path: Path
    entries: tuple[Entry, ...]


def read_document(path: Path) -> Document:
    """Read a config file.

    Raises:
        ConfigError: it cannot be read, is no YAML, or is more than keys with values and lists.
    """
    text = _text(path)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{path}{_line_of(error)}: {_what(error)}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"{path}:{line}: holds the control character {chr(error.character)!r}"
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: is no YAML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: is nested too deep; values are one level deep") from error
    entries = () if root is None else tuple(_entries(root, path))
    return Document(path, entries)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigError(f"--config: there is no file {path}") from error
    except IsADirectoryError as error:
        raise ConfigError(f"--config: {path} is a folder; name the file") from error
    except OSError as error:
        raise ConfigError(f"--config: {path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"--config: {path} is larger than 1 MiB; is it a config file?")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8; save it as UTF-8") from error


def _line_of(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f":{mark.line + 1}"


def _what(error: yaml.MarkedYAMLError) -> str:
    """Say in one line what the parser found, and what to do where that is known."""
    problem = error.problem or "is no YAML"
    if problem.startswith(_TAB):
        return "a tab can't stand here in YAML; indent with spaces"
    if isinstance(error, yaml.composer.ComposerError) and "another document" in problem:
        return "a second document begins; keep one, without ---"
    context = f" {error.context}" if error.context else ""
    hint = "; put the value in quotes" if "not allowed here" in problem or "'@'" in problem else ""
    return f"is no YAML: {problem}{context}{hint}"


def _entries(root: yaml.Node, path: Path) -> Iterator[Entry]:
    """Yield the entries of the top level.

    Raises:
        ConfigError: it holds something else, or a key twice.
    """
    if not isinstance(root, yaml.MappingNode) or root.tag != f"{_TAG}map":
        raise ConfigError(
            f"{_place(path, root)}: must hold keys with values, as 'pyscript: train.py', not "
            f"{_named(root)}"
        )
    seen: dict[str, int] = {}
    for key, value in root.value:
        name = _key(key, path)
        line = key.start_mark.line + 1
        if name in seen:
            raise ConfigError(
                f"{path}:{line}: {name} stands in line {seen[name]} already; keep one of them"
            )
        seen[name] = line
        yield Entry(key=name, line=line, value=_value(name, value, path))


def _key(node: yaml.Node, path: Path) -> str:
    if node.tag == _MERGE:
        raise ConfigError(f"{_place(path, node)}: '<<' is not read; write the keys out")
    if not isinstance(node, yaml.ScalarNode) or _KINDS.get(node.tag) != "text":
        raise ConfigError(f"{_place(path, node)}: a key must be a name, not {_named(node)}")
    return str(node.value)


def _value(key: str, node: yaml.Node, path: Path) -> Scalar | tuple[Scalar, ...]:
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return tuple(_scalar(key, item, path) for item in node.value)
    return _scalar(key, node, path)


def _scalar(key: str, node: yaml.Node, path: Path) -> Scalar:
    kind = _KINDS.get(node.tag)
    if not isinstance(node, yaml.ScalarNode) or kind is None:
        raise ConfigError(f"{_place(path, node)}: {key} can't be {_named(node)}")
    text = str(node.value)
    is_empty = kind == "null" and not text
    return Scalar(text, "empty" if is_empty else kind, node.start_mark.line + 1)


def _named(node: yaml.Node) -> str:
    if not node.tag.startswith(_TAG) or ":" in node.tag.removeprefix(_TAG):
        return f"of the type {node.tag.removeprefix(_TAG)}"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return repr(str(node.value)) if node.value else "nothing"


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
