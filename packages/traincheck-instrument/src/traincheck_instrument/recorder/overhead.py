"""The time that recording takes, and the sampling interval at which it keeps to its share."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

_NS = 1e-9
_SETTLING = 3  # steps after the warm-up; the first ones cost more than those that follow
_LEAST_RECORDED = 3  # steps, before a share says something
_MOST_RECORDED = 16  # steps; what lies further back is not recent any more
_LARGEST_INTERVAL = 2**20


@attrs.define(eq=False)
class Overhead:
    """Counts the time that recording takes.

    In the program's threads: from the begin to the end of the recorder's work, waiting for a writer
    that lags behind included. Beside them: CPU time of the thread that writes, which takes turns
    with the program's. Not counted is what a wrapper costs that records nothing.
    """

    _writer_ns: Callable[[], int]
    # A thread of the program may miss what another adds at the same instant; the share stands.
    threads_ns: int = 0

    @property
    def ns(self) -> int:
        """All of it so far, in nanoseconds."""
        return self.threads_ns + self._writer_ns()

    @property
    def seconds(self) -> float:
        """All of it so far."""
        return self.ns * _NS


@attrs.define(eq=False)
class Budget:
    """Raises the sampling interval so that recording takes no more than its share of the time.

    The share is that of the recent steps, of training and evaluation alike. The interval doubles as
    often as it takes, and never falls: a step that is recorded at one interval is one of those that
    were recorded at the intervals before.
    """

    percent: float
    _overhead: Overhead
    _now: Callable[[], int] = time.monotonic_ns
    _settling: int = _SETTLING  # steps still to come before the recent ones
    _since: int = 0  # when the recent steps began
    _overhead_since: int = 0
    _threads_since: int = 0
    _threads_ns: int = 0  # overhead in the program's threads until the last step began
    _fixed_ns: int = 0  # of that what fell to recent steps that are left out, such as at a stage
    _steps: int = 0  # that ended since
    _recorded: int = 0  # of these
    _risen: tuple[int, int] | None = None  # when the interval last rose, and the overhead then
    _until_settled: int = 0  # steps, until a share since then says something

    def since_risen(self) -> tuple[float, float] | None:
        """Return the seconds since the interval last rose, and what recording took of them.

        None if it did not rise, or did too late for their share to say something.
        """
        if self._risen is None or self._until_settled > 0:
            return None
        now, overhead = self._risen
        return (self._now() - now) * _NS, (self._overhead.ns - overhead) * _NS

    def interval_after(self, interval: int, *, was_recorded: bool) -> int:
        """Return the interval from the step on which begins now; called for each after the warm-up.

        Args:
            interval: What held for the step before.
            was_recorded: Whether that was recorded.
        """
        before, self._threads_ns = self._threads_ns, self._overhead.threads_ns
        if self._settling:
            self._settling -= 1
            self._restart()
            return interval
        self._steps += 1
        self._until_settled -= 1
        if was_recorded:
            self._recorded += 1
        else:
            self._fixed_ns += self._threads_ns - before
        if self._recorded < _LEAST_RECORDED:
            return interval
        fitting = self._fitting(interval)
        if fitting != interval or self._recorded >= _MOST_RECORDED:
            self._restart()
        if fitting != interval:
            self._risen = self._since, self._overhead_since
            self._until_settled = _LEAST_RECORDED * fitting
        return fitting

    def _restart(self) -> None:
        self._since = self._now()
        self._overhead_since = self._overhead.ns
        self._threads_since = self._threads_ns
        self._steps = self._recorded = self._fixed_ns = 0

    def _fitting(self, interval: int) -> int:
        """Return the least interval at which the recent steps would have kept to the budget."""
        spent = self._overhead.ns - self._overhead_since
        in_threads = max(self._threads_ns - self._threads_since, 1)
        fixed_part = self._fixed_ns / in_threads  # of the writer's time, too
        elapsed = max(self._now() - self._since, spent)
        share = self.percent / 100
        of_a_recorded = spent * (1 - fixed_part) / self._recorded
        fixed = spent * fixed_part / self._steps
        allowed = share * (fixed + (elapsed - spent) / self._steps)  # of each step, recorded or not
        # What no interval lowers may take more than there is: half is for what one does.
        allowed -= min(fixed, allowed / 2)
        while of_a_recorded * (1 - share) > interval * allowed and interval < _LARGEST_INTERVAL:
            interval *= 2
        return interval
