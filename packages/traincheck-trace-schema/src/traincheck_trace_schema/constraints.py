"""Constraints on the fields of documents, said in their types: `Annotated[int, Between(0)]`.

Reading a document refuses what a constraint does not admit, as the JSON Schema does. Making an
object in Python checks nothing; `validation.validate` does.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable
from typing import Annotated, Any, Final, Protocol, TypeAlias, runtime_checkable

import attrs

BEYOND: Final = 2**62  # of counts and steps: windows need room for what comes after all of them
MAX_DEPTH: Final = 200  # levels of a record; readers recurse, and their stacks are limited
MOST_RANKS: Final = 2**20  # of a world: readers count through it

# Written in C, all of them: every number of every record passes one.
Test: TypeAlias = Callable[[Any], object]


class Mismatch(ValueError):  # noqa: N818  it becomes an error of the caller's choice
    """A value is not what its field may hold; the message completes "field 'x' ..."."""


class _Shown(reprlib.Repr):
    """Writes the start of a value as JSON has it."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = 80

    def repr_str(self, text: str, _: int) -> str:
        """Write a text, cut in its middle if it is long."""
        half = self.maxstring // 2
        cut = text if len(text) <= self.maxstring else f"{text[:half]}...{text[-half:]}"
        return json.dumps(cut, ensure_ascii=False)

    def repr_bool(self, value: object, _: int) -> str:
        """Write true or false."""
        return "true" if value else "false"

    def repr_NoneType(self, _: None, __: int) -> str:  # noqa: N802  found by the type's name
        """Write null."""
        return "null"


def shown(value: Any) -> str:
    """Return what a message shows of a value: a document may hold one of many megabytes."""
    return _Shown().repr(value)


@runtime_checkable
class Constraint(Protocol):
    """What a value must fulfil beyond its type."""

    @property
    def claim(self) -> str:
        """Complete "must be an integer"."""

    @property
    def test(self) -> Test:
        """Return what is true of a value of the right type that fulfils it."""


@attrs.frozen
class Between:
    """An integer has a minimum and a maximum."""

    minimum: int
    maximum: int = BEYOND - 1

    @property
    def claim(self) -> str:
        """Complete "must be an integer"."""
        if self.maximum == BEYOND - 1:
            return f" of at least {self.minimum} and below 2^62"
        return f" from {self.minimum} to {self.maximum}"

    @property
    def test(self) -> Test:
        """Whether the number lies between them."""
        return range(self.minimum, self.maximum + 1).__contains__


@attrs.frozen
class FromZeroToOne:
    """A number is a share of a whole."""

    @property
    def claim(self) -> str:
        """Complete "must be a number"."""
        return " from 0 to 1"

    @property
    def test(self) -> Test:
        """Whether the number lies there; not-a-number does not."""
        return lambda value: 0 <= value <= 1


@attrs.frozen
class NotEmpty:
    """A text has a character, a list an item."""

    @property
    def claim(self) -> str:
        """Complete "must be a text"."""
        return " that is not empty"

    @property
    def test(self) -> Test:
        """Whether there is something in it."""
        return bool


@attrs.frozen
class Matches:
    """A whole text is of a pattern; an example says so to people."""

    pattern: str
    example: str

    @property
    def claim(self) -> str:
        """Complete "must be a text"."""
        return f" like {self.example!r}"

    @property
    def test(self) -> Test:
        """Whether the text is of the pattern."""
        return re.compile(self.pattern).fullmatch


Count: TypeAlias = Annotated[int, Between(0)]
Number: TypeAlias = Annotated[int, Between(1)]  # of things of which there is always one
Ranks: TypeAlias = Annotated[int, Between(1, MOST_RANKS)]  # how many
StepNumber: TypeAlias = Annotated[int, Between(-1)]  # -1: before the first
Share: TypeAlias = Annotated[float, FromZeroToOne()]
Name: TypeAlias = Annotated[str, NotEmpty()]
Dtype: TypeAlias = Annotated[str, Matches(r"(?!torch\.)(?s:.*)", "float32")]
Version1: TypeAlias = Annotated[str, Matches(r"1\.[0-9]+", "1.0")]
