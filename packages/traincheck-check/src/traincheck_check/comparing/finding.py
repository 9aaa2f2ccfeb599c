"""The first difference of each kind on a rank, and how many followed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import attrs

from traincheck_check.comparing.result import Divergence, Kind
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_PASS, Window

# Of a divergence all but where it is, which is known where it is found.
Words = Mapping[str, Any]


@attrs.frozen(order=True)
class Moment:
    """A place in the stream of a rank: within a window, tokens are counted."""

    window: Window
    index: int
    is_trailing: bool = attrs.field(default=False, order=False)  # after the last common call


@attrs.define(eq=False)
class Found:
    """The first difference of a kind."""

    moment: Moment
    first: Divergence
    steps: int = 0  # with such a difference
    last_step: int = -1

    def told(self) -> Divergence:
        """Return it with how many followed."""
        return attrs.evolve(self.first, steps=self.steps, last_step=self.last_step)


@attrs.define(eq=False)
class Findings:
    """What was found on a rank, of the kinds that were asked for."""

    rank: int
    kinds: Collection[Kind]
    found: dict[Kind, Found] = attrs.field(factory=dict)
    _in_step: set[Kind] = attrs.field(factory=set)  # found in the step at hand

    def add(self, kind: Kind, at: Moment, words: Callable[[], Words]) -> None:
        """Take note of a difference; it is put into words if it is the first of its kind."""
        if kind not in self.kinds:
            return
        self._in_step.add(kind)
        if kind not in self.found:
            self.found[kind] = Found(at, self._divergence(kind, at.window, words()))

    def end_step(self, step: int, lasting: Iterable[Kind] = ()) -> None:
        """Count a step that ends; `lasting` are kinds in which something differs at its end."""
        for kind in self._in_step.union(lasting):
            if (known := self.found.get(kind)) is not None:
                known.steps += step >= 0
                known.last_step = step
        self._in_step.clear()

    def forget_trailing(self, step: int) -> None:
        """Forget what only one run did at the end of its last step, where the other went on."""
        for kind, found in tuple(self.found.items()):
            if found.moment.is_trailing and found.moment.window.step == step:
                del self.found[kind]

    def put_off_trailing(self, step: int, until: Moment) -> None:
        """Sort what only one run did at the end of its last step after that it was the last."""
        for found in self.found.values():
            if found.moment.is_trailing and found.moment.window.step == step:
                found.moment = attrs.evolve(until, index=until.index + 1 + found.moment.index)

    def in_order(self) -> Iterator[tuple[Moment, Divergence]]:
        """Yield what was found, the earliest first."""
        for found in sorted(self.found.values(), key=lambda found: found.moment):
            yield found.moment, found.told()

    def _divergence(self, kind: Kind, window: Window, words: Words) -> Divergence:
        is_in_pass = window.eval_step not in {BEFORE_PASS, AFTER_PASS}
        return Divergence(
            kind=kind,
            rank=self.rank,
            step=window.step,
            eval_pass=window.eval_pass,
            eval_step=window.eval_step if is_in_pass else None,
            **words,
        )
