"""Sets the records that show a violation beside those of a run in which the invariant held."""

from __future__ import annotations

from collections import defaultdict
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING

import attrs

from traincheck_check.reporting.html.record_fields import Field, fields_of, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.occasion import Evidence, Reference

_MAX_RECORDS = 6  # of a reference
_SUBJECT = ("event", "function", "names")  # what records of one kind are about


@attrs.frozen
class Row:
    """A field of two records: what it says here, and in the reference."""

    name: str
    here: str | None
    there: str | None
    differs: bool = False


@attrs.frozen
class Stand:
    """Where a record stands in a trace."""

    at: str
    shard: str


@attrs.frozen(kw_only=True)
class Pair:
    """Two records of one kind, or one that has no match."""

    title: str
    here: Stand | None  # None: this run has no such record
    there: Stand | None
    rows: tuple[Row, ...]
    more: int = 0  # fields


@attrs.frozen(kw_only=True)
class Comparison:
    """The evidence of a violation, and what it is compared with."""

    pairs: tuple[Pair, ...]
    rest: tuple[Pair, ...] = ()  # records of this run after those that have a match
    reference: str = ""  # which run, and where in it; empty: there is none

    @property
    def is_alike(self) -> bool:
        """Whether nothing in the records that are compared differs from the reference."""
        return not any(
            each.here is None or each.there is None or any(row.differs for row in each.rows)
            for each in self.pairs
        )


def compared(
    evidence: Sequence[Evidence], reference: Reference | None, max_fields: int
) -> Comparison:
    """Compare the evidence of a violation with that of the reference, if there is one.

    Records are matched in their order, by kind and phase. Of digests is compared which of them are
    equal within a run: whether ranks agree, say, or whether a tensor was changed.

    Without a reference, the records from the first on that is like one before it are the rest: they
    show a further violation.
    """
    if reference is None or not reference.evidence:
        alone = [_pair(each, None, _Digests(), max_fields) for each in evidence]
        first = _first_again(evidence)
        return Comparison(pairs=tuple(alone[:first]), rest=tuple(alone[first:]))
    matched = list(_matched(evidence, reference.evidence[:_MAX_RECORDS]))
    last = max((at for at, (_, there) in enumerate(matched) if there), default=-1) + 1
    digests = _Digests()
    pairs = [_pair(here, there, digests, max_fields) for here, there in matched]
    return Comparison(
        pairs=tuple(pairs[:last]),
        rest=tuple(pairs[last:]),
        reference=_reference(reference),
    )


def held_in_words(invariant: Invariant | None, reference: Reference | None) -> str:
    """Say where an invariant held, as far as it tells."""
    source = "" if reference is None or not reference.at.source else f", at {reference.at.source}"
    first = "" if reference is None else f"first in {_reference(reference)}{source}"
    held = None if invariant is None else invariant.num_positive_examples
    if invariant is None or held is None:
        return first or "not known: the invariant does not say"
    occasions = held + (invariant.num_negative_examples or 0)
    all_of = "all " if held == occasions else f"{held:,} of "
    runs = f" of {len(invariant.runs)} good run{'s' * (len(invariant.runs) != 1)}"
    often = f"on {all_of}{occasions:,} occasions{runs if invariant.runs else ''}"
    return "; ".join(filter(None, (often, first)))


def _reference(reference: Reference) -> str:
    at = reference.at
    return f"run {reference.run}, {at.when}, rank {at.rank}"


def _matched(
    here: Sequence[Evidence], there: Sequence[Evidence]
) -> Iterator[tuple[Evidence | None, Evidence | None]]:
    matcher = SequenceMatcher(None, [*map(_key, here)], [*map(_key, there)], autojunk=False)
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(here[left:left_end], there[right:right_end], strict=True)
        else:
            yield from ((each, None) for each in here[left:left_end])
            yield from ((None, each) for each in there[right:right_end])


def _first_again(evidence: Sequence[Evidence]) -> int:
    """Return where the first record stands that is like one before it, or how many there are."""
    seen = set()
    for at, each in enumerate(evidence):
        key = (*_key(each), each.rank, *(str(each.record.get(name)) for name in _SUBJECT))
        if key in seen:
            return at
        seen.add(key)
    return len(evidence)


def _key(of: Evidence) -> tuple[str, ...]:
    return tuple(str(of.record.get(name)) for name in ("kind", "phase", "role"))


@attrs.frozen
class _Digests:
    """The digests in matched records of two runs, by path, in the order of their appearance."""

    _here: defaultdict[str, dict[str, int]] = attrs.field(factory=partial(defaultdict, dict))
    _there: defaultdict[str, dict[str, int]] = attrs.field(factory=partial(defaultdict, dict))

    def differ(self, path: str, here: str | None, there: str | None) -> bool:
        """Whether one run repeats a digest where the other one does not."""
        if here is None or there is None:
            return False
        mine, others = self._here[path], self._there[path]
        return mine.setdefault(here, len(mine)) != others.setdefault(there, len(others))


def _pair(
    here: Evidence | None, there: Evidence | None, digests: _Digests, max_fields: int
) -> Pair:
    mine = {} if here is None else fields_of(here.record)
    others = {} if there is None else fields_of(there.record)
    is_both = here is not None and there is not None
    rows = [
        _row(name, mine.get(name), others.get(name), digests if is_both else None)
        for name in dict.fromkeys((*mine, *others))
    ]
    shown = here or there
    return Pair(
        title="" if shown is None else title_of(shown.record),
        here=None if here is None else _stand(here),
        there=None if there is None else _stand(there),
        rows=tuple(rows[:max_fields]),
        more=len(rows[max_fields:]),
    )


def _row(name: str, here: Field | None, there: Field | None, digests: _Digests | None) -> Row:
    """Tell a field of two records; without `digests`, there is only one."""
    if here is None or there is None:
        mine, other = (None if each is None else each.text for each in (here, there))
        return Row(name, mine, other, differs=digests is not None)
    differs = digests is not None and (
        here.content != there.content or digests.differ(name, here.digest, there.digest)
    )
    return Row(name, here.text, there.text, differs)


def _stand(of: Evidence) -> Stand:
    step, number = of.record.get("step"), of.record.get("seq")
    parts = (
        f"step {step}" if isinstance(step, int) and step >= 0 else "",
        f"rank {of.rank}",
        f"record {number}" if isinstance(number, int) else "",
    )
    return Stand(", ".join(filter(None, parts)), of.shard)
