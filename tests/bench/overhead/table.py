"""What is printed of the measurements: a paragraph a workload, and which targets are met."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import attrs
from overhead.peer import PeerFigures
from overhead.recorded import TraceFigures
from overhead.runs import Best

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FULL, FULL_MEDIAN = 1.25, 1.10  # times plain
PLAN, PLAN_MS = 1.03, 0.3  # times plain, or so much more
PLAN_START_S, FULL_START_S = 0.5, 3.0
PEER = 50  # times less added
LEAST_MS = 0.01  # nothing measured here is finer


@attrs.frozen(kw_only=True)
class Result:
    """What was measured of one workload."""

    workload: str
    plain: Best
    noise: float
    full: Best
    plan: Best
    invariants: Best  # by the plan of those that were learnt
    unsampled: Best
    floor: Best  # digests of parameters and gradients alone
    launcher_s: float
    trace: TraceFigures
    peer: PeerFigures | None

    def times(self, best: Best) -> float:
        """Return the median step as a multiple of the plain one."""
        return best.median_ms / self.plain.median_ms

    def added_ms(self, best: Best) -> float:
        """Return what is added to the median step."""
        return best.median_ms - self.plain.median_ms

    def start_s(self, best: Best) -> float:
        """Return what is added outside the steps."""
        return best.outside_s - self.plain.outside_s + self.launcher_s

    @property
    def peer_factor(self) -> float | None:
        """How many times more the peer adds to a step."""
        if self.peer is None:
            return None
        return self.added_ms(self.peer.best) / max(self.added_ms(self.full), LEAST_MS)

    def is_met(self, plan: Best) -> bool:
        """Whether a plan is as cheap as it is to be."""
        return self.added_ms(plan) <= max((PLAN - 1) * self.plain.median_ms, PLAN_MS)


def print_result(result: Result) -> None:
    """Print what was measured of one workload."""
    plain, trace, peer = result.plain, result.trace, result.peer
    alone = f"plain {plain.median_ms:.2f} ms a step (mean {plain.mean_ms:.2f})"
    _print(
        f"\n{result.workload}: {alone}, noise {result.noise:.3f}x",
        *(
            f"{_line(how, result, best)}   start {result.start_s(best):+.2f} s"
            for how, best in (
                ("full", result.full),
                ("plan", result.plan),
                ("invariants", result.invariants),
                ("unsampled", result.unsampled),
            )
        ),
        _line("floor", result, result.floor),
        f"  trace      {trace.calls:.0f} calls, {trace.looks:.0f} looks, {_size(trace)}",
    )
    if peer is not None:
        added = f"it adds {result.peer_factor:.0f} times what we add"
        _print(_line("peer", result, peer.best), f"  its trace  {_size(peer)}; {added}")


def _line(how: str, result: Result, best: Best) -> str:
    mean = best.mean_ms / result.plain.mean_ms
    return (
        f"  {how:<10} {result.times(best):6.3f}x  {result.added_ms(best):+8.2f} ms a step"
        f"  (mean {mean:.3f}x)"
    )


def _size(trace: TraceFigures | PeerFigures) -> str:
    each = trace.size_bytes / max(trace.records, 1)
    size = f"{trace.records:.0f} records of {each:.0f} bytes, {trace.size_bytes / 1000:.1f} kB"
    return f"{size} a step; {trace.all_records} records in all"


def print_targets(results: Sequence[Result]) -> None:
    """Print which targets are met, and which workloads miss those that are not."""
    full = {each.workload: each.times(each.full) for each in results}
    median = statistics.median(full.values())
    _print(
        "",
        _target(f"full: at most {FULL}x", (n for n, times in full.items() if times > FULL)),
        _target(
            f"full: at most {FULL_MEDIAN}x in the median of them",
            [f"{median:.3f}x"] if median > FULL_MEDIAN else (),
        ),
        _target(
            f"plan: at most {PLAN}x, or {PLAN_MS} ms more",
            (each.workload for each in results if not each.is_met(each.plan)),
        ),
        _target(
            f"invariants: at most {PLAN}x, or {PLAN_MS} ms more",
            (each.workload for each in results if not each.is_met(each.invariants)),
        ),
        _target(
            "unsampled: within the noise of plain runs, or 2%",
            (e.workload for e in results if e.times(e.unsampled) > max(e.noise, 1.02)),
        ),
        _target(
            f"start of a plan: less than {PLAN_START_S} s",
            (each.workload for each in results if each.start_s(each.plan) >= PLAN_START_S),
        ),
        _target(
            f"start of full: less than {FULL_START_S} s",
            (each.workload for each in results if each.start_s(each.full) >= FULL_START_S),
        ),
    )
    factors = {each.workload: each.peer_factor for each in results if each.peer_factor is not None}
    if factors:
        missed = (name for name, factor in factors.items() if factor < PEER)
        _print(_target(f"peer: adds at least {PEER} times more", missed))


def _target(what: str, missed: Iterable[str]) -> str:
    names = ", ".join(missed)
    return f"{what:<52} {f'NOT met: {names}' if names else 'met'}"


def _print(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)  # noqa: T201
