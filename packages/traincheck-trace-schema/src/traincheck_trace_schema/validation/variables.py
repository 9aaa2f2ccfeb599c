"""The rules about variables: what is told of each, and what observations claim to have seen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_trace_schema.validation.finding import Remarks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST_LIVE: Final = 1_000_000  # variables at a time; then all are forgotten
_CONTENT = ("digest", "statistics", "data", "layout", "placements")  # or why there is none


@attrs.define(eq=False)
class _Variable:
    """A variable that is there. Of one that was never introduced, the attributes are not known."""

    role: str
    names: list[str]
    others: tuple[Any, ...] = ()  # what else is told of it in each record
    attributes: set[str] | None = attrs.field(factory=set)  # that were told; None: not known


@attrs.define
class VariableRules:
    """Follows the variables that are there; memory depends on how many there are at a time."""

    _remarks: Remarks
    is_hashed: bool = True  # the content of tensors is told as digests
    _live: dict[int, _Variable] = attrs.field(factory=dict)
    _number: Counter[str] = attrs.field(factory=Counter)  # role: variables, of known attributes
    _told: Counter[tuple[str, str]] = attrs.field(factory=Counter)  # role, attribute: of how many
    _without_content: set[str] = attrs.field(factory=set)  # attributes of which a hint was given
    _has_variables: bool = False
    _has_observed: bool = False

    def on_var(self, record: Mapping[str, Any]) -> None:
        """Take a variable's state."""
        self._has_variables = True
        if record["event"] == "gone":
            if not self._remove(record["id"]):
                self._miss(record)
            return
        attributes = record.get("attributes") or {}
        known = self._live.get(record["id"])
        if known is None:
            known = self._add(record)
        else:
            self._compare(known, record, attributes)
        known.names, known.others = record["names"], _others(record)
        self._learn(known, attributes)
        if self.is_hashed:
            self._look_for_content(attributes)
        between = record.get("between")
        if between and not between[0] < between[1]:
            self._remarks.problem(f"field 'between' must rise; got {between}")
        elif between and between[1] != record["seq"]:
            self._remarks.problem(
                f"field 'between' must end at 'seq', {record['seq']}; got {between}"
            )

    def on_observe(self, record: Mapping[str, Any]) -> None:
        """Take an observation, which covers only what was told of each variable before."""
        self._has_observed = True
        for attribute in record["attributes"]:
            for role in record["roles"]:
                if self._told[role, attribute] < self._number[role]:
                    self._cover(role, attribute)

    def on_clean_end(self) -> None:
        """Hint at variables that nobody looked at."""
        if self._has_variables and not self._has_observed:
            self._remarks.hint(
                "has var records and no observe record: that a variable did not change can't be "
                "known"
            )

    def _add(self, record: Mapping[str, Any]) -> _Variable:
        if len(self._live) >= _MOST_LIVE:
            self._live.clear()
            self._number.clear()
            self._told.clear()
            self._remarks.is_lossy = True
        variable = _Variable(record["role"], record["names"])
        if record["event"] == "changed":
            variable.attributes = None
            self._miss(record)
        else:
            self._number[variable.role] += 1
        self._live[record["id"]] = variable
        return variable

    def _remove(self, number: int) -> bool:
        variable = self._live.pop(number, None)
        if variable is not None and variable.attributes is not None:
            self._number[variable.role] -= 1
            self._told.subtract((variable.role, name) for name in variable.attributes)
        return variable is not None

    def _miss(self, record: Mapping[str, Any]) -> None:
        number, event = record["id"], record["event"]
        self._remarks.unless_lost(
            f"variable {number} is {event} before a record said that it is there"
        )

    def _compare(
        self, known: _Variable, record: Mapping[str, Any], attributes: Mapping[str, Any]
    ) -> None:
        """Hold a record against what is known of its variable."""
        number, names = record["id"], record["names"]
        is_same = names == known.names and _others(record) == known.others
        if record["event"] == "changed" and not attributes and is_same:
            self._remarks.problem(
                f"variable {number} ({names[0]}) is changed, and nothing says in what"
            )
        # One that is wrapped keeps the last part: model.fc.weight, model.module.fc.weight.
        if names != known.names and not _last_parts(names) & _last_parts(known.names):
            self._remarks.hint(
                f"variable {number} was {known.names[0]} and is {names[0]} now; "
                "another variable has another id"
            )

    def _learn(self, variable: _Variable, attributes: Iterable[str]) -> None:
        if variable.attributes is not None:
            new = [name for name in attributes if name not in variable.attributes]
            variable.attributes.update(new)
            for name in new:
                self._told[variable.role, name] += 1

    def _cover(self, role: str, attribute: str) -> None:
        """Tell of the variables of a role that an attribute was never told of, once."""
        lacking = [
            (number, variable)
            for number, variable in self._live.items()
            if variable.role == role
            and variable.attributes is not None
            and attribute not in variable.attributes
        ]
        for _, variable in lacking:
            self._learn(variable, [attribute])
        number, variable = lacking[0]
        more = f", nor did {len(lacking) - 1} more" if len(lacking) > 1 else ""
        self._remarks.unless_lost(
            f"covers {attribute!r}, which variable {number} ({variable.names[0]}) never told{more}"
        )

    def _look_for_content(self, attributes: Mapping[str, Any]) -> None:
        """Hint at tensors that could be told apart only by their digest, and have none."""
        for name, value in attributes.items():
            tensor = value.get("tensor") if type(value) is dict else None
            if (
                tensor is None
                or any(tensor.get(field) is not None for field in _CONTENT)
                or 0 in tensor["shape"]
                or tensor["device"].startswith("meta")
                or name in self._without_content
            ):
                continue
            self._without_content.add(name)
            self._remarks.hint(
                f"attribute {name!r} is a tensor without digest or layout: its content can't be "
                "compared"
            )


def _others(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record.get("held_by", []), record["role"], record["type"], record["storage"]


def _last_parts(names: Iterable[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names}
