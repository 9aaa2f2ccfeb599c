"""Finds the relations that are installed, by entry point, and validates each as it loads."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import attrs

from traincheck_relations.api import Relation
from traincheck_relations.conditions.preconditions import compile_group, condition_of
from traincheck_trace_schema.errors import ConfigError, InvariantError, PluginError
from traincheck_trace_schema.invariants import APIParam

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from traincheck_trace_schema.invariants import Invariant

ENTRY_POINTS = "traincheck.relations"
_OPTIONAL = ("without_implied", "likelihood")
_NO_FAULTS: Mapping[str, PluginError] = MappingProxyType({})
_METHODS = ("proposer", "requires", "monitor", "describe")


@attrs.frozen
class Loaded:
    """The relations that could be loaded, and why the others could not, both by name."""

    relations: Mapping[str, Relation]
    faults: Mapping[str, PluginError]


def load_relations(
    only: Collection[str] | None = None, without: Collection[str] = ()
) -> dict[str, Relation]:
    """Load the relations that are installed in this environment, by name.

    Args:
        only: Names of the relations to load; None loads all.
        without: Names of relations to leave out.

    Raises:
        ConfigError: A name in `only` or `without` is no installed relation.
        PluginError: A relation cannot be imported, or does not implement the interface.
    """
    loaded = load_sound_relations(only, without)
    for error in loaded.faults.values():
        raise error
    return dict(loaded.relations)


def load_sound_relations(
    only: Collection[str] | None = None, without: Collection[str] = ()
) -> Loaded:
    """Load relations as `load_relations` does, without those that cannot be loaded.

    Raises:
        ConfigError: A name in `only` or `without` is no installed relation.
        PluginError: Two packages define one relation.
    """
    entries = _by_name(entry_points(group=ENTRY_POINTS))
    unknown = sorted({*(only or ()), *without} - entries.keys())
    if unknown:
        raise ConfigError(
            f"No relation {', '.join(map(repr, unknown))} is installed; "
            f"installed are: {', '.join(entries) or 'none'}"
        )
    relations: dict[str, Relation] = {}
    faults: dict[str, PluginError] = {}
    for name, entry in entries.items():
        if name not in without and (only is None or name in only):
            try:
                relations[name] = _load(entry)
            except PluginError as error:
                faults[name] = error
    return Loaded(relations, faults)


def relations_for(invariants: Sequence[Invariant]) -> Loaded:
    """Load the installed ones of the relations that invariants are about.

    Raises:
        InvariantError: None of the invariants can be checked.
        PluginError: Two packages define one relation.
    """
    installed = {entry.name for entry in entry_points(group=ENTRY_POINTS)}
    loaded = load_sound_relations(only={one.relation for one in invariants} & installed)
    reasons = not_checkable(invariants, loaded.relations, loaded.faults)
    if invariants and len(reasons) == len({one.id for one in invariants}):
        first = {reason: id_ for id_, reason in reversed(reasons.items())}
        told = "; ".join(f"{id_}: {reason}" for reason, id_ in sorted(first.items()))
        raise InvariantError(
            f"None of the invariants can be checked: {told} (installed are: "
            f"{', '.join(sorted(installed)) or 'none'}); install the package that offers what is "
            "missing, or infer the invariants again"
        )
    return loaded


def not_checkable(
    invariants: Iterable[Invariant],
    relations: Mapping[str, Relation],
    faults: Mapping[str, PluginError] = _NO_FAULTS,
) -> dict[str, str]:
    """Say of the invariants that can't be checked with these relations why, by their ids.

    Args:
        invariants: What is to be checked.
        relations: By name.
        faults: Why others, which are installed, could not be loaded.
    """
    reasons = ((one.id, _why_not_checkable(one, relations, faults)) for one in invariants)
    return {id_: reason for id_, reason in reasons if reason}


def _why_not_checkable(
    invariant: Invariant, relations: Mapping[str, Relation], faults: Mapping[str, PluginError]
) -> str:
    """Let a relation look at an invariant, before it does so in the middle of a run."""
    relation = relations.get(invariant.relation)
    if relation is None:
        if fault := faults.get(invariant.relation):
            return str(fault)
        return f"relation {invariant.relation!r} is not installed"
    asks = any(isinstance(one, APIParam) and not one.is_any_call for one in invariant.params)
    if asks and not getattr(relation, "looks_at_arguments", False):
        return f"{invariant.relation} does not look at arguments and exceptions, as its params ask"
    try:
        relation.requires(invariant.params)
        relation.monitor([invariant.params])
    except Exception as error:  # noqa: BLE001  a plugin may refuse in any way
        return f"{invariant.relation} does not understand its params: {error}"
    try:
        compile_group(condition_of(invariant, relation))
    except InvariantError as error:
        return str(error)
    return ""


def _by_name(entries: Iterable[EntryPoint]) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.value)):
        earlier = found.setdefault(entry.name, entry)
        # An editable installation beside a wheel offers the very same entry twice.
        if earlier.value != entry.value:
            raise PluginError(
                f"Two packages define relation {entry.name!r}: {_origin(earlier)} and "
                f"{_origin(entry)}; uninstall one"
            )
    return found


def _load(entry: EntryPoint) -> Relation:
    try:
        relation = entry.load()()
    except Exception as error:
        raise PluginError(
            f"Relation {entry.name!r} from {_origin(entry)} failed to load: "
            f"{type(error).__name__}: {error}; fix or uninstall that package"
        ) from error
    if problem := _problem(relation, entry.name):
        raise PluginError(f"Relation {entry.name!r} from {_origin(entry)} {problem}")
    return cast("Relation", relation)


def _problem(relation: object, entry_name: str) -> str | None:
    """Say in which way an object is no relation, or None."""
    name = getattr(relation, "name", None)
    if name != entry_name:
        return f"must have the attribute name = {entry_name!r}, got {name!r}"
    group = getattr(relation, "group", None)
    if not isinstance(group, str) or not group:
        return f"must have an attribute group of text that is not empty, got {group!r}"
    missing = [method for method in _METHODS if not callable(getattr(relation, method, None))]
    if missing:
        return f"must have the methods {', '.join(missing)}"
    wrong = [name for name in _OPTIONAL if not callable(getattr(relation, name, _optional))]
    return f"must have {', '.join(wrong)} as methods, if at all" if wrong else None


def _optional() -> None:
    """Stand for a method that a relation need not have."""


def _origin(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
