"""Compares what one rank did in two runs, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from traincheck_check.comparing import calls, hints
from traincheck_check.comparing.alignment import aligned, last_common_call, unmatched
from traincheck_check.comparing.finding import Findings, Moment
from traincheck_check.comparing.result import RankComparison, Spread
from traincheck_check.comparing.scope import Scope
from traincheck_check.comparing.script import END, LOOK, Raw
from traincheck_check.comparing.side import RankSide
from traincheck_check.comparing.state import State
from traincheck_check.comparing.values import Tolerance, parting

if TYPE_CHECKING:
    from traincheck_check.comparing.script import Script
    from traincheck_trace_schema.window import Window

_MOST_SPREADS: Final = 1000  # then only the last step is told anew
_UNKNOWN: Final = object()


@attrs.define(eq=False)
class RankComparer:
    """Holds a rank of run A against the same rank of run B."""

    rank: int
    sides: tuple[RankSide, RankSide]
    scopes: tuple[Scope, Scope]
    findings: Findings
    tolerance: Tolerance
    is_chosen: Callable[[int], bool]  # steps that are compared
    is_told_alike: bool  # both runs record alike
    steps: int = 0
    calls: int = 0
    values: int = 0
    state: State = attrs.field(init=False)
    _step: int | None = None
    _is_compared: bool = False  # something of the step at hand
    _missing: int = 0  # in the step at hand: calls without a counterpart
    _unlike: int = 0  # and arguments and results that differ
    _spread: list[Spread] = attrs.field(factory=list)
    _is_behind: bool = False  # what came before was not chosen
    _is_resumed: bool = False  # after a pause, and nothing was compared since
    _begins: list[tuple[Raw, Raw]] = attrs.field(factory=list)  # of open pairs

    def __attrs_post_init__(self) -> None:
        self.state = State(self.sides, self.findings, self.tolerance)

    def take(self, window: Window, a: Sequence[Raw], b: Sequence[Raw]) -> None:
        """Compare a window of which both runs have records, or one."""
        if window.step != self._step:
            self._end_step()
            self._step = window.step
        scripts = [
            side.take(records, window, scope)
            for side, records, scope in zip(self.sides, (a, b), self.scopes, strict=True)
        ]
        is_recorded = all(side.process.is_recorded(window) for side in self.sides)
        has_lost = any(script.has_lost for script in scripts)
        if not self.is_chosen(window.step):
            self._is_behind = True
        elif has_lost:
            pass
        elif a and b and is_recorded:
            self._compare(window, *scripts)
        elif window.eval_pass and (a or b):
            self._one_sided(window, *scripts)
        for side in self.sides:
            side.apply_changes()

    def finish(self) -> RankComparison:
        """Return what was found."""
        self._end_step()
        a, b = (side.variables.known.keys() for side in self.sides)
        return RankComparison(
            rank=self.rank,
            steps=self.steps,
            calls=self.calls,
            values=self.values,
            variables=len(a & b),
            divergences=tuple(divergence for _, divergence in self.findings.in_order()),
            spread=tuple(self._spread),
        )

    def _compare(self, window: Window, a: Script, b: Script) -> None:
        self._is_compared = True
        if window.step >= 0 and not window.eval_pass:
            self.steps += 1
        if self._is_behind and self.is_told_alike:
            self.state.compare_all(Moment(window, -1))
        self._is_behind = False
        self._begins.clear()
        self._is_resumed = any(_has_baseline(script) for script in (a, b))
        if a.tokens == b.tokens:
            self.calls += a.calls
            self._walk_alike(window, a, b)
        else:
            self._walk_apart(window, a, b)
        end = Moment(window, max(len(a.tokens), len(b.tokens)))
        for side in self.sides:
            side.apply_changes()
        has_looks = any(token.startswith(LOOK) for token in a.tokens)
        if not has_looks or (window.step < 0 and self.is_told_alike):
            self.state.compare_all(end)
        if window.step >= 0 or self.is_told_alike:
            self.state.compare_arrivals(end, is_told_alike=self.is_told_alike)

    def _walk_alike(self, window: Window, a: Script, b: Script) -> None:
        """Compare scripts of equal tokens: most of them, so that this loop is felt."""
        for at, (token, x, y) in enumerate(zip(a.tokens, a.records, b.records, strict=True)):
            if token == END:
                self._end(x, y, window, at)
            elif token[0] == LOOK:
                self._look(x, y, (at, at), Moment(window, at))
            else:
                self._begin(x, y, window, at)

    def _walk_apart(self, window: Window, a: Script, b: Script) -> None:
        pairs = list(aligned(a.tokens, b.tokens))
        last = last_common_call(pairs, a.tokens)
        missing = unmatched(pairs, a.tokens, b.tokens)
        i_next = j_next = 0
        for at, (i, j) in enumerate(pairs):
            is_trailing = at > last and bool(missing[0] or missing[1])
            moment = Moment(window, at, is_trailing)
            if i is not None:
                i_next = i + 1
            if j is not None:
                j_next = j + 1
            if i is not None and j is not None:
                self._pair(a, b, i, j, moment)
            elif i is not None:
                self._only(self.sides, (a, i), (b, j_next), moment, other_names=missing[1])
            elif j is not None:
                a_side, b_side = self.sides
                self._only((b_side, a_side), (b, j), (a, i_next), moment, other_names=missing[0])

    def _pair(self, a: Script, b: Script, i: int, j: int, moment: Moment) -> None:
        token, x, y = a.tokens[i], a.records[i], b.records[j]
        if token == END:
            self._end(x, y, moment.window, moment.index)
        elif token[0] == LOOK:
            self._look(x, y, (i, j), moment)
        else:
            self.calls += 1
            self._begin(x, y, moment.window, moment.index)

    def _begin(self, x: Raw, y: Raw, window: Window, at: int) -> None:
        if (
            x.get("args") != y.get("args")
            or x.get("self") != y.get("self")
            or x.get("ctx") != y.get("ctx")
        ):
            found = calls.argument_parting(
                x, y, self.sides, self.tolerance, is_same_scope=self.is_told_alike
            )
            if found is not None:
                self._unlike += 1
                is_first = not self.findings.found
                self.findings.add(
                    "arguments",
                    Moment(window, at),
                    lambda: calls.of_argument(*found, x, y, self.sides, is_first=is_first),
                )
        self.values += "args" in x and "args" in y
        self._begins.append((x, y))

    def _end(self, x: Raw, y: Raw, window: Window, at: int) -> None:
        begun = self._begins.pop() if self._begins else None
        if x["kind"] != y["kind"] or x.get("exception") != y.get("exception"):
            if begun is not None:
                self.findings.add(
                    "calls", Moment(window, at), lambda: calls.of_error(x, y, begun, self.sides)
                )
            return
        one, other = x.get("result", _UNKNOWN), y.get("result", _UNKNOWN)
        if one is _UNKNOWN or other is _UNKNOWN:
            return
        self.values += 1
        if one != other and (found := parting(one, other, self.tolerance)) is not None:
            self._unlike += 1
            if begun is not None:
                a, b = begun
                is_first = not self.findings.found
                self.findings.add(
                    "results",
                    Moment(window, at),
                    lambda: calls.of_result(found, a, b, self.sides, is_first=is_first),
                )

    def _look(self, x: Raw, y: Raw, at: tuple[int, int], moment: Moment) -> None:
        for side, token in zip(self.sides, at, strict=True):
            side.apply_changes(token)
        seen = x["attributes"]
        if seen != y["attributes"]:
            seen = [each for each in seen if each in y["attributes"]]
        if self._is_resumed and self.is_told_alike:
            self._is_resumed = False
            self.state.compare_all(moment)  # all of it was told when recording resumed
        self.state.compare_seen(x["roles"], seen, moment)

    def _only(
        self,
        sides: tuple[RankSide, RankSide],
        here: tuple[Script, int],
        there: tuple[Script, int],
        moment: Moment,
        *,
        other_names: frozenset[str],
    ) -> None:
        script, at = here
        token, record = script.tokens[at], script.records[at]
        if token == END or token[0] == LOOK:
            return
        self._missing += 1
        has, lacks = sides
        self.findings.add(
            "calls",
            moment,
            lambda: calls.of_missing(
                record, has, lacks, lacks.next_call(there[1]), is_order=token in other_names
            ),
        )

    def _one_sided(self, window: Window, a: Script, b: Script) -> None:
        """Take note of a step of evaluation that one run makes in a step that both recorded."""
        has, lacks = self.sides if a.tokens else self.sides[::-1]
        script = a if a.tokens else b
        if not script.calls or not has.process.is_recorded(window):
            return
        if not lacks.process.has_recorded(window.step):
            return
        record = next(each for each in script.records if each["kind"] == "call_begin")
        self._missing += script.calls
        self._is_compared = True
        what = f"{has.letter} evaluates in step {window.step}, {lacks.letter} does not"
        self.findings.add(
            "calls",
            Moment(window, 0, is_trailing=True),
            lambda: {
                **calls.of_missing(record, has, lacks, None, is_order=False),
                "what": f"{what}: pass {window.eval_pass}, {record['function']}",
                "likely": hints.OF_EVALUATION,
            },
        )

    def _end_step(self) -> None:
        """Sum up how many variables and calls differ at the end of a step."""
        step, self._step = self._step, None
        state = self.state
        is_compared, self._is_compared = self._is_compared, False
        if step is None or not is_compared:
            return
        self.findings.end_step(step, state.lasting())
        now = Spread(
            first_step=step,
            last_step=step,
            steps=1,
            parameters=state.count("parameter", "data"),
            gradients=len(state.gradients),
            buffers=state.count("buffer", "data"),
            calls=self._missing,
            values=self._unlike,
        )
        state.gradients = set(state.differing.get(("parameter", "grad"), ()))
        self._missing = self._unlike = 0
        last = self._spread[-1] if self._spread else None
        if last is not None and _is_like(last, now):
            self._spread[-1] = attrs.evolve(last, last_step=step, steps=last.steps + 1)
        elif len(self._spread) < _MOST_SPREADS:
            self._spread.append(now)
        else:
            self._spread[-1] = now


def _has_baseline(script: Script) -> bool:
    return bool(script.changes) and script.changes[0][1]["event"] == "baseline"


def _is_like(one: Spread, other: Spread) -> bool:
    return attrs.evolve(one, first_step=0, last_step=0, steps=0) == attrs.evolve(
        other, first_step=0, last_step=0, steps=0
    )
