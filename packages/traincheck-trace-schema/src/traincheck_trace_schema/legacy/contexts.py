"""The contexts of calls, from the calls that open and close them: autocast only.

0.x did not record the methods of `no_grad` and its like, so whether gradients were enabled is not
known: that is said of each call, since 1.0 takes silence for "enabled".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.legacy.values import dtype_name

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTOCAST: Final = "torch.amp.autocast_mode.autocast"  # those of each device call its methods
NOT_TOLD: Final = {"grad_mode": {"cut": "bool"}}

_PARAMETERS = ("device_type", "dtype", "enabled")
_MOST_CONSTRUCTED = 256  # objects remembered between construction and entering


@attrs.define
class Contexts:
    """The contexts that are open in one thread."""

    _constructed: dict[int, dict[str, Any]] = attrs.field(factory=dict)  # by address
    _open: dict[int, dict[str, Any]] = attrs.field(factory=dict)  # innermost last

    def active(self) -> dict[str, Any]:
        """Return what a call record says of its contexts."""
        innermost = next(reversed(self._open.values()), {})
        return {**NOT_TOLD, **innermost}

    def on_begin(self, record: Mapping[str, Any]) -> None:
        """Take the begin of a call: an object is constructed, or a context is left."""
        owner, _, method = record["function"].rpartition(".")
        if owner != AUTOCAST or (address := _address(record)) is None:
            return
        if method == "__init__":
            self._constructed.pop(address, None)
            self._constructed[address] = _described(_arguments(record))
            if len(self._constructed) > _MOST_CONSTRUCTED:
                del self._constructed[next(iter(self._constructed))]
        elif method == "__exit__":
            self._open.pop(address, None)

    def on_end(self, record: Mapping[str, Any]) -> None:
        """Take the end of a call: a context is entered when its method returns."""
        address = _address(record)
        if record["function"] == f"{AUTOCAST}.__enter__" and address is not None:
            self._open.pop(address, None)
            self._open[address] = self._constructed.get(address, {})


def _address(record: Mapping[str, Any]) -> int | None:
    address = record.get("obj_id")
    return address if type(address) is int else None


def _arguments(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of autocast's constructor, by name."""
    by_position = record.get("args") or {}
    by_name = record.get("kwargs") or {}
    found = {}
    for position, name in enumerate(_PARAMETERS, start=1):
        given = by_name.get(name, by_position.get(str(position)))
        if isinstance(given, dict) and len(given) == 1:
            (found[name],) = given.values()
    return found


def _described(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context that arguments open; where no dtype was given, the default is not told."""
    device_type, dtype = arguments.get("device_type"), arguments.get("dtype")
    if not isinstance(device_type, str) or arguments.get("enabled") is False:
        return {}
    context: dict[str, Any] = {"autocast.device_type": device_type}
    if isinstance(dtype, str):
        context["autocast.dtype"] = {"dtype": dtype_name(dtype)}
    return context
