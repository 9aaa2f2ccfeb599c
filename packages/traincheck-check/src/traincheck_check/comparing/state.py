"""Compares the variables of a rank in two runs, and puts into words in what they differ."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_check.comparing import hints
from traincheck_check.comparing.finding import Findings
from traincheck_check.comparing.result import MAX_NAMES
from traincheck_check.comparing.side import RankSide
from traincheck_check.comparing.values import Parting, Tolerance, parting
from traincheck_check.comparing.variables import (
    BESIDE,
    HELD_BY,
    TIES,
    TYPE,
    Field,
    Key,
    Told,
    kind_of,
    kind_of_role,
)
from traincheck_check.diagnosing.diagnosis import some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_check.comparing.finding import Moment, Words
    from traincheck_check.comparing.result import Kind
    from traincheck_check.comparing.script import Raw

_RANKING: Final[tuple[Kind, ...]] = ("settings", "parameters", "buffers", "gradients")


@attrs.frozen(eq=False)
class _Parted:
    """A variable that differs."""

    key: Key
    a: Told
    b: Told
    parting: Parting

    @property
    def order(self) -> tuple[int, str]:
        """Sorts variables as run A told of them first, which is their order in the model."""
        return self.a.record["id"], self.key[1]


@attrs.define(eq=False)
class State:
    """Which variables of a rank differ at a moment."""

    sides: tuple[RankSide, RankSide]
    findings: Findings
    tolerance: Tolerance
    differing: dict[Field, set[Key]] = attrs.field(factory=dict)
    gradients: set[Key] = attrs.field(factory=set)  # that differed in the step at hand

    def compare_seen(self, roles: Iterable[str], attributes: Sequence[str], at: Moment) -> None:
        """Compare what both runs have just looked at, as far as it is news."""
        for role in roles:
            for attribute in (*attributes, *BESIDE):
                self._compare((role, attribute), at)

    def compare_all(self, at: Moment) -> None:
        """Compare all that is news: what was set first, then what follows from it."""
        news = {each for side in self.sides for each in side.variables.news}
        for field in sorted(news, key=lambda field: (_RANKING.index(kind_of(*field)), field)):
            self._compare(field, at)

    def compare_arrivals(self, at: Moment, *, is_told_alike: bool) -> None:
        """Compare which variables there are.

        Args:
            at: Where.
            is_told_alike: Both runs were asked to tell the same; else roles count only where both
                have some of it.
        """
        a, b = (side.variables for side in self.sides)
        arrivals = a.arrivals | b.arrivals
        a.arrivals, b.arrivals = set(), set()
        one_sided = [key for key in arrivals if (key in a.known) != (key in b.known)]
        for role in dict.fromkeys(role for role, _ in sorted(one_sided)):
            of_role = {name for key_role, name in one_sided if key_role == role}
            names = a.names(role), b.names(role)
            if is_told_alike or all(names):
                only = sorted(names[0] & of_role), sorted(names[1] & of_role)
                words = partial(_of_arrivals, role, *only)
                self.findings.add(kind_of_role(role), at, words)

    def lasting(self) -> set[Kind]:
        """Return the kinds in which variables differ."""
        kinds = {kind_of(*field) for field, keys in self.differing.items() if keys}
        return kinds | ({"gradients"} if self.gradients else set())

    def count(self, role: str, attribute: str) -> int:
        """Return how many variables differ in an attribute."""
        return len(self.differing.get((role, attribute), ()))

    def _compare(self, field: Field, at: Moment) -> None:
        a, b = (side.variables for side in self.sides)
        news = a.news.pop(field, None), b.news.pop(field, None)
        if news == (None, None):
            return
        role, attribute = field
        known = self.differing.setdefault(field, set())
        new: list[_Parted] = []
        for key in (news[0] or set()) | (news[1] or set()):
            x, y = a.known.get(key, {}).get(attribute), b.known.get(key, {}).get(attribute)
            found = None
            if x is not None and y is not None and x.value != y.value:
                found = parting(x.value, y.value, self.tolerance)
            if found is None or x is None or y is None:
                known.discard(key)
                continue
            if key not in known:
                new.append(_Parted(key, x, y, found))
                known.add(key)
            if attribute == "grad":
                self.gradients.add(key)
        if new:
            self.findings.add(kind_of(role, attribute), at, lambda: self._words(field, new, at))

    def _words(self, field: Field, parted: Sequence[_Parted], at: Moment) -> Words:
        role, attribute = field
        in_order = sorted(parted, key=lambda each: each.order)
        first = in_order[0]
        x, y, found = first.a, first.b, first.parting
        a, b = self.sides
        begun = [
            side.begun(told.record.get("call"))
            for side, told in zip(self.sides, (x, y), strict=True)
        ]
        names = [each.key[1] for each in in_order]
        call = next((each for each in begun if each is not None), None)
        before = at.window.step < 0
        kind = kind_of(role, attribute)
        what = self._cleared(names, in_order, at) if attribute == "grad" else ""
        if not what:
            what = _sentence(field, names, found)
            if kind != "settings":
                what += self._circumstance(in_order, begun, at)
        return {
            "what": what,
            "likely": hints.of_variables(
                kind, attribute, is_before=before, is_first=not self.findings.found
            )
            if not all(_is_resumed(each, at) for each in in_order)
            else hints.OF_PAUSE,
            "in_a": found.in_a,
            "in_b": found.in_b,
            "size": found.size,
            "function": call["function"] if call else None,
            "source_a": a.source(begun[0]) or a.source(x.record),
            "source_b": b.source(begun[1]) or b.source(y.record),
            "names": tuple(names[:MAX_NAMES]),
            "count": len(names),
            "of": len(a.variables.names(role) & b.variables.names(role)),
        }

    def _cleared(self, names: Sequence[str], parted: Sequence[_Parted], at: Moment) -> str:
        """Say that one run clears gradients that the other keeps; empty if that is not so."""
        first = parted[0]
        for index, (none, kept) in enumerate(((first.a, first.b), (first.b, first.a))):
            is_new = none.window.step == at.window.step
            if none.value is None and is_new and kept.window.step < at.window.step:
                clears, keeps = self.sides[index].letter, self.sides[1 - index].letter
                since = f"that of step {kept.window.step}"
                return f"{clears} clears the gradient of {some_of(names)}, {keeps} keeps {since}"
        return ""

    def _circumstance(
        self, parted: Sequence[_Parted], begun: Sequence[Raw | None], at: Moment
    ) -> str:
        """Say where the values were given: in the same call, elsewhere, or in one run only."""
        if at.window.step < 0:
            return " before the first step"
        if all(_is_resumed(each, at) for each in parted):
            return " when recording resumes, so they parted in a step that was not recorded"
        named = [each["function"] for each in begun if each is not None]
        place = f" after {named[0]}" if named else ""
        steps = [(each.a.window.step, each.b.window.step) for each in parted]
        last = max(map(max, steps))
        if last < at.window.step:
            return " since before the first step" if last < 0 else f" since step {last}"
        them = "it" if len(parted) == 1 else "them"
        for one, other in ((0, 1), (1, 0)):
            late, early = self.sides[one], self.sides[other]
            if all(each[other] < each[one] for each in steps):
                return f"{place}: {late.letter} changes {them}, {early.letter} does not"
            if begun[one] is None and begun[other] is not None:
                looked = late.looked_before((parted[0].a, parted[0].b)[one].record)
                after = f", after {looked}" if looked else ""
                where = f"outside of the calls that are looked at{after}"
                return f": {late.letter} changes {them} {where}"
        return place


def _is_resumed(each: _Parted, at: Moment) -> bool:
    """Whether a difference was told when recording resumed after a pause."""
    told = max((each.a, each.b), key=lambda told: told.window)
    return told.record["event"] == "baseline" and told.window.step == at.window.step > 0


def _sentence(field: Field, names: Sequence[str], found: Parting) -> str:
    _, attribute = field
    subject = some_of(names)
    both = f"{found.in_a} in A and {found.in_b} in B"
    if attribute == HELD_BY:
        holders = (each.strip("'") for each in (found.in_a, found.in_b))
        return "{} is held by {} in A and by {} in B".format(subject, *holders)
    if attribute == TYPE:
        return f"{subject} is {both}"
    if attribute == TIES:
        return f"{subject}: the names that share it are {both}"
    if attribute == "grad" and "None" in (found.in_a, found.in_b):
        lacking = "A" if found.in_a == "None" else "B"
        return f"{lacking} has no gradient of {subject}"
    if found.is_content:
        is_one = len(names) == 1
        noun = {"grad": f"The gradient{'s' * (not is_one)} of ", "data": ""}
        return f"{noun.get(attribute, f'{attribute} of ')}{subject} differ{'s' * is_one}"
    return f"{attribute}{found.where} of {subject} is {both}"


def _of_arrivals(role: str, only_a: Sequence[str], only_b: Sequence[str]) -> Words:
    told = [
        f"{letter} has {len(names)} {role}{'s' * (len(names) > 1)} that {other} has not "
        f"({some_of(names)})"
        for letter, other, names in (("A", "B", only_a), ("B", "A", only_b))
        if names
    ]
    names = (*only_a, *only_b)
    return {
        "what": "; ".join(told),
        "likely": "The models, or what they are trained with, are not the same.",
        "in_a": some_of(only_a),
        "in_b": some_of(only_b),
        "names": names[:MAX_NAMES],
        "count": len(names),
    }
