"""Lists, tuples, dictionaries and sets, cut where they are long, deep or cyclic.

The methods of the base types are called: those of a subclass are code of the program.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeAlias

import attrs

from traincheck_instrument.encode.names import type_name
from traincheck_instrument.encode.scalars import Json
from traincheck_trace_schema.codec import dumps

_MAX_DEPTH = 4
MAX_ITEMS = 32  # of one container
MAX_ITEMS_IN_ALL = 256  # of a value, whatever way they are nested
_MAX_SORTED = 1024  # items whose order is found out; to sort those of a set takes 50 us


@attrs.define
class Walk:
    """Where the encoding of one value stands: how deep, and how many items it may still take."""

    depth: int = 0
    left: int = MAX_ITEMS_IN_ALL


Encode: TypeAlias = Callable[[Any, Walk | None], Json]  # None: the value is no item


def container_encoder(kind: type, encode: Encode) -> Encode | None:
    """Return what encodes the containers of a type; None if it is no such type."""
    for base, encode_container in _ENCODERS:
        if issubclass(kind, base):
            cut = {"cut": type_name(kind)}
            return _cut_below(encode_container, cut, encode)
    return None


def _cut_below(
    encode_container: Callable[[Any, Encode, Walk], Json], cut: Json, encode: Encode
) -> Encode:
    def encode_nested(value: Any, walk: Walk | None) -> Json:
        if walk is None:
            walk = Walk()
        if walk.depth >= _MAX_DEPTH:
            return cut
        walk.depth += 1
        encoded = encode_container(value, encode, walk)
        walk.depth -= 1
        return encoded

    return encode_nested


def _encode_list(value: list[Any], encode: Encode, walk: Walk) -> Json:
    return _encode_items(list.__iter__(value), list.__len__(value), encode, walk)


def _encode_tuple(value: tuple[Any, ...], encode: Encode, walk: Walk) -> Json:
    return {"tuple": _encode_items(tuple.__iter__(value), tuple.__len__(value), encode, walk)}


def _encode_dict(value: dict[Any, Any], encode: Encode, walk: Walk) -> Json:
    taken, more = _take(_items(value), dict.__len__(value), walk)
    pairs = [[encode(key, walk), encode(item, walk)] for key, item in taken]
    return {"dict": [*pairs, [_more(more), None]] if more else pairs}


def _items(value: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    """Return the items in their order; an `OrderedDict` has one that `dict` does not know of.

    To ask for that one hashes the keys, which is safe only where they are plain.
    """
    is_ordered = issubclass(type(value), OrderedDict) and dict.__len__(value) <= _MAX_SORTED
    if is_ordered and all(type(key) is str for key in list(dict.keys(value))):
        return OrderedDict.items(value)  # type: ignore[arg-type]  # it is one
    return dict.items(value)


def _encode_set(value: set[Any], encode: Encode, walk: Walk) -> Json:
    return {"set": _encode_in_order(set.__iter__(value), set.__len__(value), encode, walk)}


def _encode_frozenset(value: frozenset[Any], encode: Encode, walk: Walk) -> Json:
    length = frozenset.__len__(value)
    return {"set": _encode_in_order(frozenset.__iter__(value), length, encode, walk)}


_ENCODERS: tuple[tuple[type, Callable[[Any, Encode, Walk], Json]], ...] = (
    (list, _encode_list),
    (tuple, _encode_tuple),
    (dict, _encode_dict),
    (set, _encode_set),
    (frozenset, _encode_frozenset),
)


def _encode_items(items: Iterable[Any], length: int, encode: Encode, walk: Walk) -> list[Json]:
    taken, more = _take(items, length, walk)
    encoded = [encode(item, walk) for item in taken]
    if more:
        encoded.append(_more(more))
    return encoded


def _encode_in_order(items: Iterable[Any], length: int, encode: Encode, walk: Walk) -> list[Json]:
    """Encode the items of a set in an order that is the same in every process.

    Python's own differs between processes. What can't be sorted cheaply is told by its number.
    """
    if length <= _MAX_SORTED:
        known = list(items)
        if any(all(type(item) is kind for item in known) for kind in (int, str)):
            return _encode_items(sorted(known), length, encode, walk)
        if length <= min(MAX_ITEMS, walk.left):
            return sorted(_encode_items(known, length, encode, walk), key=dumps)
    return [_more(length)]


def _take(items: Iterable[Any], length: int, walk: Walk) -> tuple[list[Any], int]:
    """Return the items that may be encoded, and how many more there are."""
    # At once, so that no other thread can change the container in between.
    taken = list(islice(items, min(MAX_ITEMS, walk.left)))
    walk.left -= len(taken)
    return taken, length - len(taken)


def _more(count: int) -> Json:
    return {"cut": f"{count} more"}
