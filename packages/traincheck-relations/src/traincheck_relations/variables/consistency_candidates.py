"""What may be equal across ranks and ties: where it says something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.api import Event, Interests
from traincheck_relations.value import has_changed
from traincheck_relations.variables.change import is_told
from traincheck_relations.variables.model_parts import ModelParts
from traincheck_relations.variables.observed import ObservedCall, ObservedCalls, is_of_parameters
from traincheck_trace_schema.invariants import (
    OccasionParam,
    Params,
    ScopeParam,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_PARAMETER = "torch.nn.Parameter"
_COMPARED = ("data", "grad")
_STEP_END = OccasionParam(phase="step_end")


class ConsistencyProposer:
    """Proposes to compare an attribute where it has just changed, or is about to be used.

    Data is compared at a step's end too: not every optimizer is one of torch's. Of buffers those
    are compared then that change: whether they are equal is up to their type of module.
    """

    interests = Interests(kinds=frozenset(("observe", "var")))

    def __init__(self) -> None:
        self._observed = ObservedCalls()
        self._occasions: set[tuple[str, str, str]] = set()
        self._data_changes = False
        self._ties: set[tuple[str, str]] = set()
        self._model = ModelParts()
        self._buffers: set[tuple[str, str]] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        is_shared = len(event.run.world()["world"]) > 1
        if event.kind == "var" and event.is_main:
            self._model.on_var(event)
            if is_shared and event.record["role"] == "buffer" and _has_new_data(event):
                self._take_buffer(event)
        if not is_of_parameters(event):
            return
        if event.kind == "var":
            first, *others = event.record["names"]
            self._ties.update((first, other) for other in others)
            self._data_changes |= is_shared and _has_new_data(event)
        elif (observed := self._observed.on_observe(event)) is not None and is_shared:
            self._take(observed)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        for function, phase, attribute in sorted(self._occasions):
            var = VarTypeParam(var_type=_PARAMETER, attr_name=attribute)
            occasion = OccasionParam(function=function, phase="end" if phase == "end" else "begin")
            yield var, var, occasion, ScopeParam(scope="ranks")
        if self._data_changes:
            var = VarTypeParam(var_type=_PARAMETER, attr_name="data")
            yield var, var, _STEP_END, ScopeParam(scope="ranks")
        for var_type, name in sorted(self._buffers):
            var = VarTypeParam(var_type=var_type, attr_name=name)
            yield var, var, _STEP_END, ScopeParam(scope="ranks")
        for one, other in sorted(self._ties):
            names = (VarNameParam(var_name=name, attr_name="data") for name in (one, other))
            yield *names, _STEP_END, ScopeParam(scope="ties")

    def _take_buffer(self, event: Event) -> None:
        owner = None if event.after is None else self._model.owner(event, event.after)
        if owner is not None:
            self._buffers.add((owner.type, event.record["names"][0].rpartition(".")[2]))

    def _take(self, observed: ObservedCall) -> None:
        for attribute in observed.attributes.intersection(_COMPARED):
            if not any(
                is_told(before, after, attribute) and has_changed(before, after, attribute)
                for before, after in observed.pairs()
            ):
                continue
            # Not of gradients when a backward ends: where several are added up, only the last of
            # them is reduced. They must be equal when they are used.
            for name in observed.call.documented if attribute == "data" else ():
                self._occasions.add((name, "end", attribute))
                if "grad" in observed.attributes:
                    self._occasions.add((name, "begin", "grad"))


def _has_new_data(event: Event) -> bool:
    record = event.record
    return record["event"] == "changed" and "data" in record.get("attributes", ())
