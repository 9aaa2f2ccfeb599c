"""What is kept of the examples of a candidate: in which contexts it held and did not, how often.

Memory is bounded by what a precondition can tell apart, not by the number of examples: a property
with more values than a clause may list, such as a seed, is forgotten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_infer.first_held import FirstHeld
from traincheck_relations.conditions.properties import MODEL
from traincheck_relations.conditions.separation import LAST_RESORT, MAX_VALUES
from traincheck_trace_schema.values import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_relations.api import Context, Example, Position

# Python takes 1 and True for the same key, and NaN for none: those two are wrapped.
_Key: TypeAlias = "Scalar | tuple[bool] | tuple[str]"
Frozen: TypeAlias = "tuple[tuple[str, _Key], ...]"

# Both sides of a claim may have so many values before no clause can tell them apart. Names are
# never forgotten for this: of hundreds of variables, a few may be all that a claim is about.
_FORGET_AT = 2 * MAX_VALUES
_NAN = ("nan",)
_MANY = 4096  # different contexts of a candidate, from which on properties are forgotten
_HASHED = 2**64


def frozen(context: Context) -> Frozen:
    """Return a context as a key."""
    # Most values are texts, which need no wrapping.
    return tuple(
        [(name, value if type(value) is str else _key(value)) for name, value in context.items()]
    )


@attrs.define
class Side:
    """The examples on which a claim held, or those on which it did not."""

    contexts: Counter[Frozen] = attrs.field(factory=Counter)
    windows: int = 0
    occasions: int = 0  # a sum that is the same for the same occasions, in whichever order
    _last: tuple[int, int, int] | None = None

    def add(self, key: Frozen, at: Position) -> bool:
        """Count an example; return whether its context is new on this side.

        The windows of a run never go backwards.
        """
        window = at.window
        moment = (window.step, window.eval_pass, window.eval_step)
        if self._last is None or moment > self._last:
            self._last = moment
            self.windows += 1
        # Of integers, so that every process has the same hash.
        self.occasions = (self.occasions + hash((at.rank, moment))) % _HASHED
        count = self.contexts.get(key, 0)
        self.contexts[key] = count + 1
        return not count

    def merge(self, other: Side) -> None:
        """Take the examples of another run."""
        self.contexts.update(other.contexts)
        self.windows += other.windows
        self.occasions = (self.occasions + other.occasions) % _HASHED

    def project(self, forgotten: Iterable[str]) -> None:
        """Count contexts that differ in these properties only as one."""
        without = frozenset(forgotten)
        merged: Counter[Frozen] = Counter()
        for key, count in self.contexts.items():
            merged[tuple(entry for entry in key if entry[0] not in without)] += count
        self.contexts = merged


@attrs.define
class Tally:
    """The examples of one candidate, of a run or of several."""

    held: Side = attrs.field(factory=Side)
    broken: Side = attrs.field(factory=Side)
    is_in_training: bool = False  # it held on an occasion that is not before the first step
    first: dict[Scalar, FirstHeld] = attrs.field(factory=dict)  # by model; not of several runs
    _values: defaultdict[str, set[_Key]] = attrs.field(factory=lambda: defaultdict(set))
    _forgotten: set[str] = attrs.field(factory=set)

    def add(self, example: Example, key: Frozen) -> None:
        """Count an example, whose context is frozen as `key`."""
        held, at = example.held, example.at
        side = self.held if held else self.broken
        if held and not self.is_in_training:
            self.is_in_training = at.window.step >= 0
            self._note_first(example)
        if self._forgotten:
            key = tuple(entry for entry in key if entry[0] not in self._forgotten)
        if side.add(key, at):
            self._take_values(key)
            if held:
                self._note_first(example)

    def merge(self, other: Tally) -> None:
        """Take the examples of another run."""
        self.held.merge(other.held)
        self.broken.merge(other.broken)
        self.is_in_training = self.is_in_training or other.is_in_training
        for name, values in other._values.items():
            self._values[name] |= values
        self._forget(other._forgotten | self._forgotten)
        self._forget(self._with_many_values(list(self._values)))
        self._bound()

    @property
    def num_positive(self) -> int:
        """How often it held."""
        return self.held.contexts.total()

    @property
    def num_negative(self) -> int:
        """How often it did not hold."""
        return self.broken.contexts.total()

    def positives(self) -> list[Context]:
        """Return the different contexts in which it held."""
        return _contexts(self.held.contexts)

    def negatives(self) -> list[Context]:
        """Return the different contexts in which it did not hold."""
        return _contexts(self.broken.contexts)

    def varying(self, prefixes: tuple[str, ...]) -> int:
        """Return how many properties, of those whose names begin so, have several values."""
        several = [name for name, values in self._values.items() if len(values) > 1]
        return sum(name.startswith(prefixes) for name in several)

    def _note_first(self, example: Example) -> None:
        """Keep where it held first, of each model; in training rather than before."""
        model = example.context.get(MODEL)
        known = self.first.get(model)
        is_new = known is None and len(self.first) < MAX_VALUES
        if is_new or (known is not None and known.at.step < 0 <= example.at.window.step):
            self.first[model] = FirstHeld.of(example)

    def _take_values(self, key: Frozen) -> None:
        """Note the values of a context that is new."""
        names = []
        for name, value in key:
            values = self._values[name]
            if value not in values:
                values.add(value)
                names.append(name)
        self._forget(self._with_many_values(names))
        self._bound()

    def _with_many_values(self, names: Iterable[str]) -> set[str]:
        return {
            name
            for name in names
            if name not in LAST_RESORT and len(self._values[name]) > _FORGET_AT
        }

    def _bound(self) -> None:
        """Forget the properties with the most values while there are too many contexts."""
        while len(self.held.contexts) + len(self.broken.contexts) > _MANY and self._values:
            self._forget({max(self._values, key=lambda name: (len(self._values[name]), name))})

    def _forget(self, names: set[str]) -> None:
        if not names:
            return
        self._forgotten |= names
        for name in names:
            self._values.pop(name, None)
        self.held.project(self._forgotten)
        self.broken.project(self._forgotten)


def _key(value: Scalar) -> _Key:
    if isinstance(value, bool):
        return (value,)
    return _NAN if value != value else value  # noqa: PLR0124  only NaN differs from itself


def _contexts(keys: Iterable[Frozen]) -> list[Context]:
    return [{name: _value(value) for name, value in each} for each in keys]


def _value(key: _Key) -> Scalar:
    if isinstance(key, tuple):
        return float("nan") if key == _NAN else key[0]
    return key
