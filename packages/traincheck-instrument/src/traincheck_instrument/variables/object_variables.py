"""The variables whose state is a few plain values: modules, optimizers, schedulers, scalers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import attrs

from traincheck_instrument.variables.variable import Change, Json, Variable
from traincheck_trace_schema.codec import dumps


@attrs.frozen
class State:
    """What is found of a variable at one moment."""

    key: tuple[object, ...]  # tells it from the others of its role
    names: tuple[str, ...]
    type: str
    values: Mapping[str, Json]  # by attribute, encoded; the same object as long as they are


@attrs.define(eq=False, kw_only=True)
class _ObjectVariable(Variable):
    """A variable, and how it was when last looked at."""

    found: Mapping[str, Json] = attrs.field(factory=dict)
    seen: dict[str, Json] = attrs.field(factory=dict)  # of what was found, what is wanted


class ObjectVariables:
    """Follows the variables of one role, whose states are asked for at each look."""

    def __init__(
        self,
        role: str,
        states: Callable[[], Iterable[State]],
        wanted: Collection[str] | None,
        next_number: Callable[[], int],
    ) -> None:
        self.role = role
        self._states = states
        self._wanted = wanted
        self._next_number = next_number
        self._known: dict[tuple[object, ...], _ObjectVariable] = {}
        self.attributes: tuple[str, ...] = ()  # that were told of all that there are

    def look(self, *, as_baseline: bool) -> list[Change]:
        """Look at all of them; return what differs from the last look."""
        changes = []
        left = dict(self._known)
        for state in self._states():
            variable = left.pop(state.key, None)
            if variable is None:
                variable = self._known[state.key] = self._begin(state)
            elif _is_as_it_was(variable, state) and not as_baseline:
                continue
            change = self._change(variable, state, as_baseline=as_baseline)
            if change is not None:
                changes.append(change)
        for key, variable in left.items():
            del self._known[key]
            changes.append(Change(event="gone", variable=variable, attributes={}))
        if changes:
            self.attributes = self._common_attributes()
        return changes

    def clear(self) -> None:
        """Follow nothing any more."""
        self._known.clear()
        self.attributes = ()

    def _common_attributes(self) -> tuple[str, ...]:
        seen = [variable.seen for variable in self._known.values()]
        return tuple(name for name in seen[0] if all(name in one for one in seen)) if seen else ()

    def _begin(self, state: State) -> _ObjectVariable:
        number = self._next_number()
        return _ObjectVariable(id=number, role=self.role, type=state.type, storage=number, names=())

    def _change(
        self, variable: _ObjectVariable, state: State, *, as_baseline: bool
    ) -> Change | None:
        is_new = as_baseline or not variable.is_told
        changed = {
            name: value
            for name, value in state.values.items()
            if (self._wanted is None or name in self._wanted)
            and (is_new or name not in variable.seen or variable.seen[name] != value)
        }
        is_renamed = variable.names != state.names
        variable.found, variable.names, variable.is_told = state.values, state.names, True
        variable.seen.update(changed)
        if not (changed or is_new or is_renamed):
            return None
        event = "baseline" if as_baseline else "appeared" if is_new else "changed"
        attributes = {name: dumps(value) for name, value in changed.items()}
        return Change(event=event, variable=variable, attributes=attributes)


def _is_as_it_was(variable: _ObjectVariable, state: State) -> bool:
    return state.values is variable.found and state.names == variable.names
