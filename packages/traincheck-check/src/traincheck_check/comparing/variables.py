"""The variables of a process as they were last told, and what was told since they were compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from traincheck_check.comparing.script import Raw
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_check.comparing.result import Kind

Key: TypeAlias = tuple[str, str]  # role, name
Field: TypeAlias = tuple[str, str]  # role, attribute

# What a record says of a variable beside its attributes, and is compared as they are.
HELD_BY: Final = "held_by"
TYPE: Final = "type"
TIES: Final = "names"
BESIDE: Final = (HELD_BY, TYPE, TIES)

_KINDS: Final[Mapping[Field, Kind]] = {
    ("parameter", "data"): "parameters",
    ("parameter", "grad"): "gradients",
    ("parameter", "grad_local"): "gradients",
    ("buffer", "data"): "buffers",
}
_OF_ROLES: Final[Mapping[str, Kind]] = {"parameter": "parameters", "buffer": "buffers"}
_TYPED: Final = frozenset(("module", "optimizer", "scheduler", "scaler"))


def kind_of(role: str, attribute: str) -> Kind:
    """Return the kind of a difference in an attribute."""
    return _KINDS.get((role, attribute), "settings")


def kind_of_role(role: str) -> Kind:
    """Return the kind of a difference in which variables there are."""
    return _OF_ROLES.get(role, "settings")


@attrs.define(eq=False)
class Told:
    """A value, and the record that told it; not to be changed."""

    # Not frozen: there is one for each change, and making a frozen one takes twice the time.

    value: Any
    record: Raw
    window: Window


@attrs.define(eq=False)
class Variables:
    """Follows the variables of a process."""

    known: dict[Key, dict[str, Told]] = attrs.field(factory=dict)
    news: dict[Field, set[Key]] = attrs.field(factory=dict)  # told since it was last compared
    arrivals: set[Key] = attrs.field(factory=set)  # came or went since that was last compared
    _keys: dict[int, Key] = attrs.field(factory=dict)

    def take(self, record: Raw, window: Window) -> None:
        """Take in what a record tells."""
        role, event = record["role"], record["event"]
        key = role, record["names"][0]
        former = self._keys.get(record["id"], key)
        if former != key:
            self._drop(former)
        if event == "gone":
            self._drop(key)
            self._keys.pop(record["id"], None)
            return
        self._keys[record["id"]] = key
        attributes = record.get("attributes", {})
        before = self.known.get(key)
        if before is None:
            self.arrivals.add(key)
        # All is told of a variable that is told anew.
        now = dict(before) if before is not None and event == "changed" else {}
        for name, value in attributes.items():
            self._tell(key, name, value, record, window, before, now)
        if role == "parameter":
            if event != "changed" or before is None or not _is_as_in(before, record):
                holders = sorted({each["optimizer"] for each in record.get("held_by", ())})
                held = ", ".join(holders) or "no optimizer"
                self._tell(key, HELD_BY, held, record, window, before, now)
                ties = ", ".join(sorted(record["names"]))
                self._tell(key, TIES, ties, record, window, before, now)
        elif role in _TYPED:
            type_ = {"object": {"type": record["type"]}}
            self._tell(key, TYPE, type_, record, window, before, now)
        self.known[key] = now

    def forget(self) -> None:
        """Forget everything: records are missing, and all is told anew."""
        self.known.clear()
        self.news.clear()
        self.arrivals.clear()
        self._keys.clear()

    def names(self, role: str) -> set[str]:
        """Return the names of the variables of a role."""
        return {name for of, name in self.known if of == role}

    def _tell(  # noqa: PLR0913, PLR0917  a value, and where it was told
        self,
        key: Key,
        attribute: str,
        value: Any,
        record: Raw,
        window: Window,
        before: Mapping[str, Told] | None,
        now: dict[str, Told],
    ) -> None:
        former = None if before is None else before.get(attribute)
        if former is not None and former.value == value:
            now[attribute] = former  # where it got this value
            return
        now[attribute] = Told(value, record, window)
        field = key[0], attribute
        keys = self.news.get(field)
        if keys is None:
            keys = self.news[field] = set()
        keys.add(key)

    def _drop(self, key: Key) -> None:
        if self.known.pop(key, None) is not None:
            self.arrivals.add(key)


def _is_as_in(before: Mapping[str, Told], record: Raw) -> bool:
    """Whether the names of a variable, and who holds it, are told as before."""
    held, ties = before.get(HELD_BY), before.get(TIES)
    return (
        held is not None
        and ties is not None
        and bool(held.record.get("held_by") == record.get("held_by"))
        and bool(ties.record["names"] == record["names"])
    )
