"""Puts into words in what two calls that correspond differ, and where a call has no counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from traincheck_check.comparing import hints
from traincheck_check.comparing.values import Parting, Tolerance, parting, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_check.comparing.finding import Words
    from traincheck_check.comparing.script import Raw
    from traincheck_check.comparing.side import RankSide

_NOTHING: Final[Mapping[str, Any]] = {}
_LEFT_OUT: Final = object()


def argument_parting(
    a: Raw, b: Raw, sides: tuple[RankSide, RankSide], tolerance: Tolerance, *, is_same_scope: bool
) -> tuple[str, Parting] | None:
    """Return the first argument, or context, in which two calls differ.

    Args:
        a: The begin of the one.
        b: That of the other.
        sides: Those whose calls they are.
        tolerance: Which numbers count as equal.
        is_same_scope: Whether both runs were asked to record the same; else an argument that
            only one records says nothing.
    """
    for name, x, y in _pairs(a, b, sides, is_same_scope=is_same_scope):
        if x is _LEFT_OUT or y is _LEFT_OUT:
            told = ["left out" if each is _LEFT_OUT else shown(each) for each in (x, y)]
            return name, Parting("", told[0], told[1])
        if x != y and (found := parting(x, y, tolerance)) is not None:
            return name, found
    return None


def _pairs(
    a: Raw, b: Raw, sides: tuple[RankSide, RankSide], *, is_same_scope: bool
) -> Iterator[tuple[str, Any, Any]]:
    yield "self", a.get("self"), b.get("self")
    x, y = a.get("args"), b.get("args")
    if isinstance(x, dict) and isinstance(y, dict) and x != y:
        defaults = [side.process.defaults.get(a["function"], _NOTHING) for side in sides]
        for name in dict.fromkeys((*x, *y)):
            pair = [
                args.get(name, default.get(name, _LEFT_OUT))
                for args, default in zip((x, y), defaults, strict=True)
            ]
            if is_same_scope or _LEFT_OUT not in pair:
                yield name, pair[0], pair[1]
    contexts = a.get("ctx") or _NOTHING, b.get("ctx") or _NOTHING
    for name in dict.fromkeys((*contexts[0], *contexts[1])):
        if is_same_scope or all(name in each for each in contexts):
            yield f"context {name}", contexts[0].get(name), contexts[1].get(name)


def of_argument(  # noqa: PLR0913  what differs, and where
    name: str, found: Parting, a: Raw, b: Raw, sides: tuple[RankSide, RankSide], *, is_first: bool
) -> Words:
    """Say in which argument two calls differ."""
    function = a["function"]
    named = f"{name}{found.where}" if name != "self" else f"the object{found.where}"
    if found.is_content:
        what = f"{function} is called with other content of {named}"
    else:
        what = f"{function} is called with {named} = {found.in_a} in A and {found.in_b} in B"
    return {
        "what": what,
        "likely": hints.of_argument(function, name, found, is_first=is_first),
        **_compared(found, a, b, sides),
    }


def of_result(
    found: Parting, a: Raw, b: Raw, sides: tuple[RankSide, RankSide], *, is_first: bool
) -> Words:
    """Say in what the results of two calls differ; `a` and `b` are their begins."""
    function = a["function"]
    if found.is_content:
        what = f"{function} returns other content{f' in {found.where}' if found.where else ''}"
    else:
        part = f"{found.where.lstrip('.')} = " if found.where else ""
        what = f"{function} returns {part}{found.in_a} in A and {found.in_b} in B"
    return {
        "what": what,
        "likely": hints.of_result(is_first=is_first),
        **_compared(found, a, b, sides),
    }


def of_error(
    a_end: Raw, b_end: Raw, begins: tuple[Raw, Raw], sides: tuple[RankSide, RankSide]
) -> Words:
    """Say that of two calls one raises, or each something else."""
    ended = [_ended(each) for each in (a_end, b_end)]
    return {
        "what": f"{begins[0]['function']} {ended[0]} in A and {ended[1]} in B",
        "likely": hints.OF_ERROR,
        "in_a": ended[0],
        "in_b": ended[1],
        **_where(*begins, sides),
    }


def of_missing(
    record: Raw, has: RankSide, lacks: RankSide, instead: Raw | None, *, is_order: bool
) -> Words:
    """Say that a call of one run has no counterpart in the other.

    Args:
        record: The begin of the call.
        has: The side that makes it.
        lacks: The side that does not.
        instead: The call that it makes there; None: the call around it, or the window, ends.
        is_order: It makes this call, too, but elsewhere.
    """
    function, within = record["function"], has.around(record)
    one, other = has.letter, lacks.letter
    place = f" in {within[-1]}" if within else ""
    if is_order:
        what = f"Calls come in another order{place}: {one} calls {function} here"
        what += f", {other} {instead['function']}" if instead else f", {other} elsewhere"
    else:
        what = f"{one} calls {function}{place}, {other} does not"
        if instead is not None and instead["function"] != function:
            what += f" (it goes on with {instead['function']})"
    told = {one: function, other: instead["function"] if instead else "no call"}
    sources = {one: has.source(record), other: lacks.source(instead)}
    return {
        "what": what,
        "likely": hints.of_missing(function, lacks.letter, is_order=is_order),
        "in_a": told["A"],
        "in_b": told["B"],
        "function": function,
        "within": within,
        "source_a": sources["A"],
        "source_b": sources["B"],
    }


def _compared(found: Parting, a: Raw, b: Raw, sides: tuple[RankSide, RankSide]) -> Words:
    return {"in_a": found.in_a, "in_b": found.in_b, "size": found.size, **_where(a, b, sides)}


def _where(a: Raw, b: Raw, sides: tuple[RankSide, RankSide]) -> Words:
    return {
        "function": a["function"],
        "within": sides[0].around(a),
        "source_a": sides[0].source(a),
        "source_b": sides[1].source(b),
    }


def _ended(record: Raw) -> str:
    return f"raises {record['exception']}" if record["kind"] == "call_error" else "returns"
