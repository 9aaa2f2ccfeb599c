"""Checks several runs that have ended, one after the other or in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import attrs

from traincheck_check.judging.judge import check_run
from traincheck_check.judging.outcome import Outcome, outcome_of
from traincheck_check.judging.warnings import warnings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_check.judging.claims import Claims
    from traincheck_trace_schema.reading import Run


@attrs.frozen(kw_only=True)
class Result:
    """What checking a run gave."""

    outcome: Outcome
    warnings: tuple[str, ...]
    notes: tuple[str, ...]  # of reading its trace


def check_one(run: Run, claims: Claims) -> Result:
    """Check a run.

    Raises:
        TraceError: Its trace can't be read.
    """
    checked = check_run(run, claims)
    return Result(
        outcome=outcome_of(checked),
        warnings=tuple(warnings_of(checked)),
        notes=run.notes(),
    )


def check_runs(runs: Sequence[Run], claims: Claims, jobs: int) -> Iterator[Result]:
    """Yield the results of runs, in their order, of which so many are checked at a time.

    Args:
        runs: The runs.
        claims: What they are checked against.
        jobs: How many processes check them; 0 stands for one a core.

    Raises:
        TraceError: The trace of one can't be read.
    """
    workers = min(jobs or os.cpu_count() or 1, len(runs))
    if workers <= 1:
        yield from (check_one(run, claims) for run in runs)
        return
    # Forking would copy the threads' locks of whatever library a plugin has loaded.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_leave_interrupts)
    try:
        yield from pool.map(partial(check_one, claims=claims), runs)
    except BaseException:
        _leave_interrupts()  # another one must not keep the workers alive
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _leave_interrupts() -> None:
    """Take no notice of Ctrl-C: it reaches all processes of a terminal, also the one that waits."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
