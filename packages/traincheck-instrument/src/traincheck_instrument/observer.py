"""Looks at the variables at the points of observation, and records what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_instrument.trackers.variables import ATTRIBUTES, Change, Variables

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.journal import Journal
    from traincheck_instrument.open_calls import OpenCall

ROLES = ("parameter",)


class Observer:
    """Records the variables of tracked models: all of them first, then what differs."""

    def __init__(self, variables: Variables, journal: Journal) -> None:
        self.variables = variables
        self._journal = journal
        self._assigned: dict[int, int] = {}  # id of a parameter: line of its last assignment
        # Of each attribute: seq of the last observation.
        self._last_look = dict.fromkeys(variables.attributes, 0)

    def is_to_look(self, spec: FunctionSpec, stack: Iterable[OpenCall]) -> bool:
        """Whether to look around a call; of several that do the same, only around the outermost."""
        return (
            spec.observe_as is not None
            and not self.variables.is_empty
            and all(call.spec.observe_as != spec.observe_as for call in stack)
        )

    def track(self, model: torch.nn.Module, name: str, *, is_recording: bool) -> None:
        """Follow the parameters of a model."""
        self.variables.add_model(model, name)
        self._write(self.variables.walk())
        if is_recording:
            self._write(self.variables.look(ATTRIBUTES))

    def note_assignment(self, parameter: torch.nn.Parameter) -> None:
        """Remember the line of user code that assigned an attribute of a parameter."""
        if (place := self._journal.lines.nearest()) is not None:
            self._assigned[id(parameter)] = self._journal.source(*place)

    def look(self, phase: str, call: OpenCall | None = None) -> None:
        """Look at all variables: at a phase of a call, or when a step ends."""
        wanted = ATTRIBUTES if call is None else call.spec.observe_attributes
        looked_at = [name for name in wanted if name in self.variables.attributes]
        if self.variables.is_empty or not looked_at:
            return
        during = call if phase == "end" else None
        self._write(self.variables.look(looked_at), during=during, is_change=True)
        self._assigned.clear()
        record = self._journal.begin("observe")
        record["phase"] = phase
        if call is not None:
            record["call"] = call.id
            record["function"] = call.spec.name
        record["roles"] = ROLES
        record["attributes"] = looked_at
        seq = self._journal.write(record)
        self._last_look.update(dict.fromkeys(looked_at, seq))

    def end_step(self) -> None:
        """Look for parameters that came and went, then at all of them."""
        if not self.variables.is_empty:
            self._write(self.variables.walk())
            self.look("step_end")

    def resume(self) -> None:
        """Tell how the variables stand after a pause, which is no change."""
        self._write(self.variables.walk())
        self._write(self.variables.look(ATTRIBUTES, as_baseline=True))

    def after_fork(self) -> None:
        """Leave the variables to the parent; called in the child."""
        self.variables.clear()
        self._assigned.clear()

    def _since(self, change: Change) -> int:
        """Return when the attributes that changed were last looked at."""
        looks = [self._last_look[name] for name in change.attributes if name in self._last_look]
        return min(looks, default=0)

    def _write(
        self,
        changes: Iterable[Change],
        *,
        during: OpenCall | None = None,
        is_change: bool = False,
    ) -> None:
        for change in changes:
            variable = change.variable
            record = self._journal.begin("var")
            record["event"] = change.event
            record["id"] = variable.id
            record["names"] = variable.names
            record["role"] = "parameter"
            record["type"] = "torch.nn.Parameter"
            record["storage"] = variable.storage
            record["held_by"] = [
                {"optimizer": name, "group": group} for name, group in variable.holders
            ]
            record["attributes"] = change.attributes
            since = None
            if during is not None:
                record["call"] = during.id
            elif is_change:
                since = self._since(change)
                src = self._assigned.get(id(variable.reference()))
                if src is not None:
                    record["src"] = src
            self._journal.write(record, since=since)
