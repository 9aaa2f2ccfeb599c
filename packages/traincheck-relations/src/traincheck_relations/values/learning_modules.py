"""Which modules learn: those of a tracked model in which a parameter requires a gradient."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.conditions.properties import FORWARD, object_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_relations.api import Call, Event


@attrs.define(eq=False)
class _Process:
    """How many parameters each module of one process has, at any depth, and how many learn."""

    told: dict[int, tuple[tuple[str, ...], bool]] = attrs.field(factory=dict)  # by id
    parameters: Counter[str] = attrs.field(factory=Counter)
    learning: Counter[str] = attrs.field(factory=Counter)


class LearningModules:
    """Follows `var` records of parameters."""

    def __init__(self) -> None:
        self._processes: defaultdict[int, _Process] = defaultdict(_Process)

    def on_var(self, event: Event) -> None:
        """Take the next `var` event."""
        record, after = event.record, event.after
        if record["role"] != "parameter":
            return
        process = self._processes[event.process]
        told = None
        if after is not None and isinstance(flag := after.attributes.get("requires_grad"), bool):
            told = (after.names, flag)
        before = process.told.get(record["id"])
        if told == before:
            return
        if before is not None:
            _count(process, *before, by=-1)
            del process.told[record["id"]]
        if told is not None:
            _count(process, *told, by=1)
            process.told[record["id"]] = told

    def may_learn(self, process: int, call: Call) -> bool:
        """Whether a call is one of a module that learns, or may be one.

        A module that has no parameters, as dropout, belongs to what is around it. Of a module
        without a name nobody knows if it learns: it is no part of a tracked model. What is called
        in no module at all may learn, and everything may where no parameters are told.
        """
        of = self._processes[process]
        modules = _modules_around(call)
        if not of.told or not modules:
            return True
        name = modules[0]
        while name and not of.parameters[name]:
            name = name.rpartition(".")[0]
        return bool(name) and of.learning[name] > 0

    def is_tracked(self, process: int, call: Call) -> bool:
        """Whether a call is in a part of a tracked model, or may be: see `may_learn`."""
        modules = _modules_around(call)
        return not self._processes[process].told or not modules or any(modules)


def _modules_around(call: Call) -> Sequence[str]:
    """Return the names of the modules that a call is of or in, "" if one has none."""
    return [object_name(one) or "" for one in (call, *call.around()) if FORWARD in one.names]


def _count(process: _Process, names: Sequence[str], flag: bool, *, by: int) -> None:  # noqa: FBT001  as it was told
    for name in names:
        for module in _owners(name):
            process.parameters[module] += by
            if flag:
                process.learning[module] += by


def _owners(name: str) -> Iterator[str]:
    """Yield the modules that have a parameter, the innermost first."""
    while name := name.rpartition(".")[0]:
        yield name
