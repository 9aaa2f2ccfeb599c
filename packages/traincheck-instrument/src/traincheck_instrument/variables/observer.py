"""Looks at the variables at the points of observation, and records what has changed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from traincheck_instrument.encode.text import key_text
from traincheck_instrument.variables.looking import is_capturing
from traincheck_instrument.variables.touches import Touches
from traincheck_instrument.variables.wanted import ROLES, Looks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import FrameType

    import torch

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.recorder.journal import Journal
    from traincheck_instrument.recorder.open_calls import OpenCall
    from traincheck_instrument.variables.variable import Change
    from traincheck_instrument.variables.variables import Variables


_TRAINING = frozenset(("step", "scaler_step"))  # deeds


class Observer:
    """Records the variables of tracked models: all of them first, then what differs."""

    def __init__(self, variables: Variables, journal: Journal) -> None:
        self.variables = variables
        self._journal = journal
        self._touches = Touches()
        # By role and attribute, the number of the last look at it, and of the last that read all.
        self._last_look: dict[tuple[str, str], int] = {}
        self._last_whole_look: dict[tuple[str, str], int] = {}
        self._phases = variables.wanted.phases
        self._has_ended_step = False
        self._all: Looks = {role: None for role in ROLES if role in variables.wanted.attributes}

    def is_to_look(self, spec: FunctionSpec, stack: Iterable[OpenCall]) -> bool:
        """Whether to look around a call; of several that do the same, only around the outermost."""
        point = spec.point
        return (
            point is not None
            and not self.variables.is_empty
            and (self._phases is None or point.deed in self._phases)
            and all(call.spec.point is None or call.spec.point.deed != point.deed for call in stack)
        )

    def meet(self, caller: object) -> None:
        """Follow an object whose observed method is called, if it is a scheduler or scaler."""
        self.variables.meet(caller)

    def track(self, model: torch.nn.Module, name: str, *, is_recording: bool) -> None:
        """Follow a model."""
        self.variables.add_model(model, name)
        self._write(self.variables.walk())
        if is_recording and not is_capturing():
            self._write(self.variables.look(self._all))

    def note_assignment(self, parameter: torch.nn.Parameter) -> None:
        """Remember the line of user code that assigned an attribute of a parameter."""
        number = self.variables.number_of(parameter)
        place = self._journal.lines.nearest()
        if number is not None and place is not None:
            self._touches.assign(number, self._journal.source(*place))

    def note_reach(self, name: str, caller: FrameType) -> None:
        """Remember the line of user code that reached a part of a model through it."""
        if (place := self._journal.lines.nearest(caller)) is not None:
            self._touches.reach(name, self._journal.source(*place))

    def renew(self) -> None:
        """Look for variables that came and went, at once."""
        self._write(self.variables.walk())
        looks: Looks = {role: () for role in ("parameter", "buffer") if role in self._all}
        if not is_capturing():
            self._write(self.variables.look(looks), is_change=True)

    def look(self, phase: str, call: OpenCall) -> None:
        """Look at the variables that a call may change, when it begins or ends."""
        point = call.spec.point
        phases, is_end = self._phases, phase == "end"
        if point is None or (phases is not None and phase not in phases[point.deed]):
            return
        if is_end and point.deed in _TRAINING:
            self.variables.begin_training()
        is_sampler = phases is not None
        during = call if is_end and not is_sampler else None
        # What begins a call was looked at when the last one ended: a quick look will do.
        whole = point.changes if is_end else None if is_sampler else ()
        self._look(point.looks, phase, call, during, whole=whole)

    def end_step(self) -> None:
        """Look for variables that came and went, then at all of them."""
        if not self.variables.is_empty:
            self._write(self.variables.walk())
            self._look(self._all, "step_end")
            # The first end may be that of what came before training; some train with no optimizer.
            if self._has_ended_step:
                self.variables.begin_training()
            self._has_ended_step = True

    def look_at_modes(self) -> None:
        """Tell which modules have changed between training and evaluation."""
        if not self.variables.is_empty and "module" in self._all:
            self._write(self.variables.look({"module": None}), is_change=True)

    def resume(self) -> None:
        """Tell how the variables stand after a pause, which is no change."""
        self._write(self.variables.walk())
        self._write(self.variables.look(self._all, as_baseline=True))

    def after_fork(self) -> None:
        """Leave the variables to the parent; called in the child."""
        self.variables.clear()
        self._touches.clear()

    def _look(
        self,
        looks: Looks,
        phase: str,
        call: OpenCall | None = None,
        during: OpenCall | None = None,
        whole: Collection[str] | None = None,
    ) -> None:
        looks = {role: looks[role] for role in self._all if role in looks}
        if not looks:
            return
        changes = self.variables.look(looks, whole=whole)
        self._write(changes, during=during, is_change=True)
        asked = looks.get("parameter", ())
        if asked is None or "data" in asked:
            self._touches.clear()  # not by a look at gradients alone
        where = f'"phase":"{phase}"'
        if call is not None:
            where += f',"call":{call.id},"function":{call.spec.name_text}'
        for role, asked in looks.items():
            attributes = self.variables.attributes_of(role)
            if asked is not None:
                attributes = tuple(name for name in attributes if name in asked)
            if attributes:
                seq = self._journal.write_text("observe", where + _covered(role, attributes))
                for name in attributes:
                    self._last_look[role, name] = seq
                    if whole is None or name in whole:
                        self._last_whole_look[role, name] = seq

    def _since(self, change: Change) -> int:
        """Return when the attributes that changed were last looked at: if late, all of them."""
        role = change.variable.role
        looks = self._last_whole_look if change.is_late else self._last_look
        if not change.attributes:  # it has other names, or is gone: any look would have shown it
            return max((seq for (of, _), seq in looks.items() if of == role), default=0)
        seqs = [looks.get((role, name)) for name in change.attributes]
        return min((seq for seq in seqs if seq is not None), default=0)

    def _write(
        self,
        changes: Iterable[Change],
        *,
        during: OpenCall | None = None,
        is_change: bool = False,
    ) -> None:
        for change in changes:
            variable = change.variable
            attributes = [f"{key_text(name)}:{text}" for name, text in change.attributes.items()]
            fields = f'"event":"{change.event}",{variable.text()}'
            fields += f',"attributes":{{{",".join(attributes)}}}'
            since = None
            if during is not None and not change.is_late:
                fields += f',"call":{during.id}'
            elif is_change:
                since = self._since(change)
                src = self._touches.line_behind(variable.id, variable.names)
                if src is not None:
                    fields += f',"src":{src}'
            self._journal.write_text("var", fields, since=since)


@functools.lru_cache
def _covered(role: str, attributes: tuple[str, ...]) -> str:
    """Return what says that all variables of a role were looked at in these attributes."""
    return f',"roles":["{role}"],"attributes":[{",".join(map(key_text, attributes))}]'
