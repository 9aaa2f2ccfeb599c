"""How values of the simple types are read: scalars, words, lists, objects, and none silently."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_origin

import cattrs
from cattrs import AttributeValidationNote, IterableValidationNote
from cattrs.cols import mapping_structure_factory

from traincheck_trace_schema.constraints import Constraint, Mismatch, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

Hook: TypeAlias = Callable[[Any, Any], Any]  # (value, its type) to what stands for it

SCALARS: dict[Any, tuple[str, tuple[type, ...]]] = {
    str: ("a text", (str,)),
    int: ("an integer", (int,)),
    bool: ("true or false", (bool,)),
    float: ("a number", (float, int)),
}


def scalar(expected: str, *types: type) -> Hook:
    """Read a value of exactly one of these types, so that `True` is no integer."""

    def structure_scalar(value: Any, _: Any) -> Any:
        if type(value) not in types:
            raise Mismatch(f"must be {expected}, got {shown(value)}")
        return value

    return structure_scalar


def any_scalar(_: Any) -> Hook:
    """Read a scalar of JSON."""
    return scalar("a text, a number, true, false or null", str, int, float, bool, NoneType)


def constrained(converter: cattrs.Converter, cls: Any) -> Hook:
    """Read what `Annotated[base, constraint]` describes."""
    base, *marks = get_args(cls)
    structure_base = converter.get_structure_hook(base)
    (constraint,) = (mark for mark in marks if isinstance(mark, Constraint))
    is_admitted = constraint.test
    noun, types = SCALARS.get(base, ("a list", ()))
    expected = noun + constraint.claim

    def structure_scalar(value: Any, _: Any) -> Any:
        if type(value) in types and is_admitted(value):
            return value
        raise Mismatch(f"must be {expected}, got {shown(value)}")

    def structure_list(value: Any, _: Any) -> Any:
        result = structure_base(value, base)
        if not is_admitted(value):
            raise Mismatch(f"must be {expected}, got {shown(value)}")
        return result

    return structure_scalar if types else structure_list


def optional(converter: cattrs.Converter, cls: Any) -> Hook:
    """Read null, or what the other type says."""
    (inner,) = (member for member in get_args(cls) if member is not NoneType)
    structure_inner = converter.get_structure_hook(inner)

    def structure_optional(value: Any, _: Any) -> Any:
        return None if value is None else structure_inner(value, inner)

    return structure_optional


def literal(cls: Any) -> Hook:
    """Read one of the words of a `Literal`."""
    words = get_args(cls)
    expected = repr(words[0]) if len(words) == 1 else f"one of {', '.join(map(repr, words))}"

    def structure_literal(value: Any, _: Any) -> Any:
        if type(value) is not str or value not in words:
            raise Mismatch(f"must be {expected}, got {shown(value)}")
        return value

    return structure_literal


def array(converter: cattrs.Converter, cls: Any) -> Hook:
    """Read a list as a tuple, of any or of a fixed length."""
    members = get_args(cls)  # of one type, in all of our documents
    length = None if members[-1] is ... else len(members)
    member = members[0]
    structure_item = converter.get_structure_hook(member)

    def structure_array(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise Mismatch(f"must be a list, got {shown(value)}")
        if length is not None and len(value) != length:
            raise Mismatch(f"must have {length} items, got {shown(value)}")
        items: list[Any] = []
        try:
            items.extend(map(structure_item, value, repeat(member)))
        except (Mismatch, cattrs.BaseValidationError) as problem:
            # Looked for again, it would take twice the time at each level of nesting.
            raise at_index(len(items), problem) from problem
        return tuple(items)

    return structure_array


def mapping(converter: cattrs.Converter, cls: Any) -> Hook:
    """Read an object whose keys are free."""
    items = mapping_structure_factory(cls, converter)

    def structure_mapping(value: Any, _: Any) -> Any:
        return items(as_object(value), cls)

    return structure_mapping


def word_or_array(converter: cattrs.Converter, cls: Any) -> Hook:
    """Read a list, or the word that stands for one."""
    word, items = sorted(get_args(cls), key=_is_tuple)
    structure_word, structure_items = map(converter.get_structure_hook, (word, items))

    def structure_either(value: Any, _: Any) -> Any:
        if isinstance(value, str):
            return structure_word(value, word)
        return structure_items(value, items)

    return structure_either


def as_object(value: Any) -> dict[str, Any]:
    """Return a JSON object as it is; refuse all else."""
    if not isinstance(value, dict):
        raise Mismatch(f"must be an object, got {shown(value)}")
    return value


def inside(name: str, problem: Exception) -> cattrs.ClassValidationError:
    """Say at which key a problem lies, as cattrs does."""
    notes: Iterable[str] = getattr(problem, "__notes__", ())
    problem.__notes__ = [*notes, AttributeValidationNote(f"in {name}", name, Any)]
    return cattrs.ClassValidationError("value", [problem], dict)


def at_index(index: int, problem: Exception) -> cattrs.IterableValidationError:
    """Say at which item of a list a problem lies, as cattrs does."""
    notes: Iterable[str] = getattr(problem, "__notes__", ())
    problem.__notes__ = [*notes, IterableValidationNote(f"at {index}", index, Any)]
    return cattrs.IterableValidationError("value", [problem], list)


def _is_tuple(cls: Any) -> bool:
    origin: Any = get_origin(cls)
    return origin is tuple
