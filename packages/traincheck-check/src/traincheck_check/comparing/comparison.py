"""Compares two runs of what should be the same program, in one pass over both."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_check.comparing.choice import Choice
from traincheck_check.comparing.comparability import notes_of
from traincheck_check.comparing.finding import Findings, Moment
from traincheck_check.comparing.rank import RankComparer
from traincheck_check.comparing.result import KINDS, Comparison, Divergence, Side
from traincheck_check.comparing.scope import Scope
from traincheck_check.comparing.script import Process
from traincheck_check.comparing.side import RankSide
from traincheck_check.comparing.verdict import summary_of, verdict_of
from traincheck_check.comparing.windows import Lane, Reader, Slice, in_step
from traincheck_trace_schema.codec import structure
from traincheck_trace_schema.records import Recording
from traincheck_trace_schema.window import BEFORE_PASS, Window

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from traincheck_check.comparing.result import RankComparison
    from traincheck_check.comparing.script import Raw
    from traincheck_trace_schema.reading import Run

_LETTERS: Final = ("A", "B")
_FOLLOWING: Final = frozenset(("results", "gradients", "parameters", "buffers"))


@attrs.define(eq=False)
class _Comparing:
    choice: Choice
    readers: tuple[Reader, Reader]
    lanes: dict[Lane, RankComparer] = attrs.field(factory=dict)
    loose: tuple[dict[Lane, Process], dict[Lane, Process]] = attrs.field(
        factory=lambda: ({}, {})
    )  # that the other run lacks

    def take(self, window: Window, a: Slice | None, b: Slice | None) -> None:
        """Compare a window of both, or of one."""
        records: list[Mapping[Lane, list[Raw]]]
        records = [{} if each is None else each.records for each in (a, b)]
        for lane in sorted({*records[0], *records[1]}):
            comparer = self._comparer(lane)
            if comparer is not None:
                self._renew(comparer, lane, records)
                comparer.take(window, *(each.get(lane, ()) for each in records))

    def _comparer(self, lane: Lane) -> RankComparer | None:
        known = self.lanes.get(lane)
        if known is not None:
            return known
        if self.choice.ranks is not None and lane[0] not in self.choice.ranks:
            return None
        if not all(lane in each.headers for each in self.readers):
            return None
        headers = [each.headers[lane] for each in self.readers]
        sides = [
            RankSide(letter, Process(lane[0], header))
            for letter, header in zip(_LETTERS, headers, strict=True)
        ]
        scopes, is_told_alike = _scopes(*headers)
        self.lanes[lane] = comparer = RankComparer(
            rank=lane[0],
            sides=(sides[0], sides[1]),
            scopes=scopes,
            findings=Findings(lane[0], frozenset(self.choice.kinds)),
            tolerance=self.choice.tolerance,
            is_chosen=self.choice.has_step,
            is_told_alike=is_told_alike,
        )
        return comparer

    def _renew(
        self, comparer: RankComparer, lane: Lane, records: Sequence[Mapping[Lane, list[Raw]]]
    ) -> None:
        """Take note of a header that is told again."""
        is_told = any(
            record["kind"] == "header" for each in records for record in each.get(lane, ())
        )
        if is_told:
            headers = [each.headers[lane] for each in self.readers]
            comparer.scopes, comparer.is_told_alike = _scopes(*headers)
            for side, header in zip(comparer.sides, headers, strict=True):
                side.process.header = header


def compare(a: Run, b: Run, paths: tuple[str, str], choice: Choice | None = None) -> Comparison:
    """Compare two runs.

    Memory holds a window of each, and the variables of their ranks; time grows with their length.

    Args:
        a: The one.
        b: The other.
        paths: Where they lie, to tell them apart.
        choice: What of them is compared.

    Raises:
        TraceError: One of them can't be read.
    """
    chosen = choice or Choice()
    readers = Reader(a, chosen.last_step), Reader(b, chosen.last_step)
    comparing = _Comparing(chosen, readers)
    for window, x, y in in_step(*(each.slices() for each in readers)):
        comparing.take(window, x, y)
    return _result(comparing, paths)


def _result(comparing: _Comparing, paths: tuple[str, str]) -> Comparison:
    for lane, comparer in comparing.lanes.items():
        _compare_ends(comparer, [lane in reader.going_on for reader in comparing.readers])
    ranks = list(_of_lanes(comparing.lanes))
    sides = [_side(comparing, index, path) for index, path in enumerate(paths)]
    divergences = tuple(_firsts(comparing.lanes.values()))
    steps = max((each.steps for each in ranks), default=0)
    verdict = verdict_of(divergences, ranks, comparing.choice)
    notes = tuple(notes_of(comparing.readers, comparing.lanes, ranks, comparing.choice))
    return Comparison(
        verdict=verdict,
        summary=summary_of(verdict, divergences, ranks, (sides[0], sides[1]), comparing.choice),
        a=sides[0],
        b=sides[1],
        kinds=tuple(kind for kind in KINDS if kind in comparing.choice.kinds),
        steps=steps,
        divergences=divergences,
        ranks=tuple(ranks),
        notes=notes,
    )


def _of_lanes(lanes: Mapping[Lane, RankComparer]) -> Iterator[RankComparison]:
    """Yield what was found on each rank, but for processes that only wait for others of theirs."""
    finished = [(lane, comparer.finish()) for lane, comparer in sorted(lanes.items())]
    several = Counter(rank for rank, _ in lanes)
    for (rank, _), each in finished:
        has_any = each.steps or each.calls or each.variables or each.divergences
        if has_any or several[rank] == 1:
            yield each


def _compare_ends(comparer: RankComparer, goes_on: Sequence[bool]) -> None:
    """Compare how far a rank came; what comes after the loop stands in its last step.

    Args:
        comparer: What is known of the rank.
        goes_on: Of each side, whether its trace goes on after the last step that is compared.
    """
    processes = [side.process for side in comparer.sides]
    lasts = [-1 if each.last_step is None else each.last_step for each in processes]
    for process, last, has_more in zip(processes, lasts, goes_on, strict=True):
        if not (process.has_ended or has_more):
            comparer.findings.forget_trailing(last)
    short, long = (0, 1) if lasts[0] < lasts[1] else (1, 0)
    if lasts[0] == lasts[1] or goes_on[short]:
        return
    end = Moment(Window(lasts[short] + 1, 0, BEFORE_PASS), 0)
    if "steps" in comparer.findings.kinds and comparer.is_chosen(end.window.step):
        comparer.findings.put_off_trailing(lasts[short], end)
    else:
        comparer.findings.forget_trailing(lasts[short])
    if processes[short].has_ended and comparer.is_chosen(end.window.step):
        one, other = _LETTERS[short], _LETTERS[long]
        told = ["no step" if each < 0 else f"step {each}" for each in lasts]
        comparer.findings.add(
            "steps",
            end,
            lambda: {
                "what": f"{one} ends after {told[short]}, {other} goes on to {told[long]}",
                "likely": "Look at the number of steps, and at what ends training early.",
                "in_a": told[0],
                "in_b": told[1],
            },
        )


def _firsts(comparers: Collection[RankComparer]) -> Iterator[Divergence]:
    """Yield the first divergence of each kind over all ranks, the earliest first."""
    found = [
        (moment, divergence.rank, divergence)
        for comparer in comparers
        for moment, divergence in comparer.findings.in_order()
    ]
    seen: set[str] = set()
    for _, _, divergence in sorted(found, key=lambda each: each[:2]):
        if divergence.kind not in seen:
            # What a rank saw first may follow from what another rank did.
            is_consequence = bool(seen) and divergence.kind in _FOLLOWING
            seen.add(divergence.kind)
            yield attrs.evolve(divergence, likely="") if is_consequence else divergence


def _side(comparing: _Comparing, index: int, path: str) -> Side:
    reader = comparing.readers[index]
    processes = [comparer.sides[index].process for comparer in comparing.lanes.values()]
    firsts = [each.first_step for each in processes if each.first_step is not None]
    lasts = [each.last_step for each in processes if each.last_step is not None]
    return Side(
        path=path,
        run_id=reader.run.run_id,
        ranks=tuple(sorted({rank for rank, _ in reader.headers})),
        first_step=min(firsts, default=None),
        last_step=max(lasts, default=None),
        incomplete_because=reader.incomplete_because(),
    )


def _scopes(a: Raw, b: Raw) -> tuple[tuple[Scope, Scope], bool]:
    one, other = (structure(Recording, each["recording"]) for each in (a, b))
    scopes = Scope.of(one, other), Scope.of(other, one)
    is_told_alike = scopes[0].is_same and a.get("tracker") == b.get("tracker")
    return scopes, is_told_alike
