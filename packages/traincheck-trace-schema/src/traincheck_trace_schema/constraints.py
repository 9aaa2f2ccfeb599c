"""Constraints on the fields of documents, said in their types: `Annotated[int, AtLeast(0)]`.

Reading a document refuses what a constraint does not admit, as the JSON Schema does. Making an
object in Python checks nothing; `validation.validate` does.
"""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

import attrs

# Written in C, all of them: every number of every record passes one.
Test: TypeAlias = Callable[[Any], object]


class Mismatch(ValueError):  # noqa: N818  it becomes an error of the caller's choice
    """A value is not what its field may hold; the message completes "field 'x' ..."."""


def shown(value: Any) -> str:
    """Return what a message shows of a value: a document may hold one of many megabytes."""
    short = reprlib.Repr()
    short.maxstring = 80
    short.maxlevel = 3
    return short.repr(value)


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
class AtLeast:
    """A number has a minimum."""

    minimum: int

    @property
    def claim(self) -> str:
        """Complete "must be an integer"."""
        return f" of at least {self.minimum}"

    @property
    def test(self) -> Test:
        """Whether the number is large enough."""
        return partial(operator.le, self.minimum)


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


Count: TypeAlias = Annotated[int, AtLeast(0)]
Number: TypeAlias = Annotated[int, AtLeast(1)]  # of things of which there is always one
StepNumber: TypeAlias = Annotated[int, AtLeast(-1)]  # -1: before the first
Name: TypeAlias = Annotated[str, NotEmpty()]
Version1: TypeAlias = Annotated[str, Matches(r"1\.[0-9]+", "1.0")]
