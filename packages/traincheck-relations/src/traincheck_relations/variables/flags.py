"""The flags of a model's parts: which parameters require a gradient, which modules train."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_relations.api import Event

# By role: the flag, and the type that stands for all variables of the role.
FLAGS: Mapping[str, tuple[str, str]] = {
    "parameter": ("requires_grad", "torch.nn.Parameter"),
    "module": ("training", "torch.nn.Module"),
}
ROLES = {attribute: role for role, (attribute, _) in FLAGS.items()}


@attrs.define(eq=False)
class Flags:
    """The flags of one role in one process, by name."""

    is_on: dict[str, bool] = attrs.field(factory=dict)
    _owners: dict[str, int] = attrs.field(factory=dict)
    _names: dict[int, tuple[str, ...]] = attrs.field(factory=dict)

    def take(self, event: Event, attribute: str) -> dict[str, bool | None]:
        """Take a `var` event of the role; return what it says of names, None: they are gone.

        A name may stand for another variable before the one that it stood for is gone.
        """
        id_ = event.record["id"]
        flag = None if event.after is None else event.after.attributes.get(attribute)
        names = () if not isinstance(flag, bool) else tuple(event.record["names"])
        said: dict[str, bool | None] = {}
        for name in self._names.pop(id_, ()):
            if name not in names and self._owners.get(name) == id_:
                del self._owners[name], self.is_on[name]
                said[name] = None
        if isinstance(flag, bool):
            self._names[id_] = names
            for name in names:
                self._owners[name] = id_
                self.is_on[name] = said[name] = flag
        return said

    def id_of(self, name: str) -> int:
        """Return the id of the variable that has a name."""
        return self._owners[name]


@attrs.define(eq=False)
class ConstantFlags:
    """The names whose flags were the same in all training steps so far, and all other names."""

    off: set[str]
    on: set[str]
    others: set[str] = attrs.field(factory=set)

    @classmethod
    def of(cls, flags: Flags) -> ConstantFlags:
        """Begin with a step."""
        return cls(*_by_value(flags))

    def take(self, flags: Flags) -> None:
        """Take the next step."""
        off, on = _by_value(flags)
        if off != self.off or on != self.on:
            self.others |= (self.off | self.on | off | on) - (self.off & off) - (self.on & on)
            self.off &= off
            self.on &= on


def _by_value(flags: Flags) -> tuple[set[str], set[str]]:
    on = {name for name, is_on in flags.is_on.items() if is_on}
    return flags.is_on.keys() - on, on
