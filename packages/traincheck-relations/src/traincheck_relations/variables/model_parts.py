"""The parts of tracked models, as `var` records tell them: which module has which tensors."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_relations.api import Event, VariableState

_FOLLOWED = ("parameter", "buffer", "module")


@attrs.define(eq=False)
class _Process:
    """The parts of the models of one process, by name and role."""

    modules: dict[str, int] = attrs.field(factory=dict)
    tensors: defaultdict[str, dict[str, int]] = attrs.field(factory=lambda: defaultdict(dict))
    names: dict[int, tuple[str, ...]] = attrs.field(factory=dict)


class ModelParts:
    """Follows `var` records of parameters, buffers and modules."""

    def __init__(self) -> None:
        self._processes: defaultdict[int, _Process] = defaultdict(_Process)

    def on_var(self, event: Event) -> None:
        """Take the next `var` event."""
        record = event.record
        if record["role"] not in _FOLLOWED:
            return
        process = self._processes[event.process]
        names = () if record["event"] == "gone" else tuple(record["names"])
        if process.names.get(record["id"]) == names:
            return
        self._leave(process, record["id"])
        process.names[record["id"]] = names
        for name in names:
            if record["role"] == "module":
                process.modules[name] = record["id"]
            else:
                owner, _, last = name.rpartition(".")
                process.tensors[owner][last] = record["id"]

    def owner(self, event: Event, variable: VariableState) -> VariableState | None:
        """Return the module that has a tensor, by the tensor's first name."""
        return self.module(event, variable.names[0].rpartition(".")[0])

    def module(self, event: Event, name: str) -> VariableState | None:
        """Return the module of this name."""
        id_ = self._processes[event.process].modules.get(name)
        return None if id_ is None else event.run.variables().get(id_)

    def tensors(self, event: Event, module: str) -> Iterator[VariableState]:
        """Yield the parameters and buffers that a module has itself."""
        for id_ in self._processes[event.process].tensors.get(module, {}).values():
            if (state := event.run.variables().get(id_)) is not None:
                yield state

    @staticmethod
    def _leave(process: _Process, id_: int) -> None:
        """Forget the names that a variable had."""
        for name in process.names.pop(id_, ()):
            owner, _, last = name.rpartition(".")
            if process.modules.get(name) == id_:
                del process.modules[name]
            if process.tensors[owner].get(last) == id_:
                del process.tensors[owner][last]
