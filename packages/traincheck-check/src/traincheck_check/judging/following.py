"""Judges a run while it goes on, and says when there is nothing more to wait for."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.judging.judge import Checked, Judge
from traincheck_trace_schema.progress import JudgedProcess
from traincheck_trace_schema.reading import StreamItem, open_live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from traincheck_check.judging.claims import Claims
    from traincheck_trace_schema.reading import LiveRun, Shard, WindowEnd

PATIENCE_SECONDS = 10.0  # after the last process died, or the folders vanished: one may come back
_ITEMS_AT_ONCE = 256  # after which it is looked whether something is to be told


@attrs.frozen(kw_only=True)
class Waiting:
    """What is followed, and how long nothing new may come.

    `idle_seconds`: after so long the run counts as over; None: as long as a process may go on.
    """

    paths: tuple[Path, ...]
    run_id: str | None = None
    rank_timeout: float = 60.0
    idle_seconds: float | None = None
    strict: bool = False


class Following:
    """Follows the trace of a run, and judges it.

    A run is over when every rank has ended; when it is silent for too long; or when all processes
    that were seen alive on this machine are gone, or the folders are, and nothing new has come
    for `PATIENCE_SECONDS`.
    """

    def __init__(
        self, waiting: Waiting, claims: Claims, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._waiting = waiting
        self.run: LiveRun = open_live(
            waiting.paths,
            run_id=waiting.run_id,
            rank_timeout=waiting.rank_timeout,
            clock=clock,
            strict=waiting.strict,
        )
        self._judge = Judge(self.run, claims)
        self._processes = _Processes()
        self._last: dict[int, Mapping[str, Any]] = {}  # record of each process that was judged
        self.records = 0

    @property
    def paths(self) -> tuple[Path, ...]:
        """What is followed."""
        return self._waiting.paths

    @property
    def violations(self) -> int:
        """How often something was broken so far."""
        return self._judge.violations

    def checked(self) -> Checked:
        """Return what was found out so far."""
        return self._judge.checked()

    def broken(self) -> tuple[int, int]:
        """Return how many invariants are broken so far, and how many of these are not known."""
        checked = self.checked()
        broken = [each.invariant.id for each in checked.findings if each.violations]
        return len(broken), sum(each not in checked.claims.known for each in broken)

    def advance(self) -> Iterator[None]:
        """Judge what has become available; yields now and then, so that it can be told.

        Raises:
            TraceError: What is there can't be followed.
        """
        for item in self.run.poll():
            self._take(item)
            self.records += 1
            if self.records % _ITEMS_AT_ONCE == 0:
                yield

    def why_over(self) -> str | None:
        """Say why there is nothing to wait for any more; None if there is, "" if all ended."""
        run, limit = self.run, self._waiting.idle_seconds
        if run.is_over:
            return ""
        silent, are_gone = run.idle_seconds, self._processes.are_gone(run.shards)
        if limit is not None and silent > limit:
            return f"nothing new has come for {limit:g} s"
        if run.shards and silent > PATIENCE_SECONDS:
            if not any(path.exists() for path in self._waiting.paths):
                return f"{', '.join(map(str, self._waiting.paths))}: is gone"
            if are_gone:
                return "all processes of the run are gone, and left no clean end"
        return None

    def is_nobody_there(self) -> bool:
        """Whether nothing comes, and none of the run's processes was ever seen alive here."""
        is_silent = self.run.idle_seconds > PATIENCE_SECONDS
        return is_silent and self._processes.are_unseen(self.run.shards)

    def finish(self) -> None:
        """Judge the rest; what comes later is not waited for.

        Raises:
            TraceError: as `advance`.
        """
        for item in self.run.finish():
            self._take(item)
        self._judge.finish(is_complete=not self.run.incomplete_because())

    def _take(self, item: StreamItem | WindowEnd) -> None:
        self._judge.take(item)
        if isinstance(item, StreamItem) and "seq" in item.record:
            self._last[item.process] = item.record

    def judged(self) -> tuple[JudgedProcess, ...]:
        """Say of each process how much of it was judged."""
        nothing: Mapping[str, Any] = {}
        lasts = (self._last.get(process.index, nothing) for process in self.run.processes)
        return tuple(
            JudgedProcess(
                shard=process.shard.path.name,
                rank=process.header.rank,
                restart=process.header.restart,
                size=process.file.seen_size,
                seq=last.get("seq", -1),
                step=last.get("step", -1),
                ended=process.has_ended and process.findings.has_footer,
            )
            for process, last in zip(self.run.processes, lasts, strict=True)
        )

    def stop(self, why: str) -> None:
        """End without the rest, and say why."""
        self._judge.finish(is_complete=False, why=why)


class _Processes:
    """Which training processes were seen alive on this machine, and are not any more.

    Those of another machine, or of another container, are never seen.
    """

    def __init__(self) -> None:
        self._host = socket.gethostname()
        self._has_seen = False  # any of them alive

    def are_gone(self, shards: Sequence[Shard]) -> bool:
        """Whether one was seen alive before, and none is now, of those that ran last."""
        mains = [each.header for each in shards if each.header.role == "main"]
        last = max((each.restart for each in mains), default=0)
        places = {(each.host, each.pid) for each in mains if each.restart == last}
        if any(host != self._host for host, _ in places):
            return False
        is_alive = any(_is_alive(pid) for _, pid in places)
        self._has_seen = self._has_seen or is_alive
        return self._has_seen and not is_alive

    def are_unseen(self, shards: Sequence[Shard]) -> bool:
        """Whether none was ever seen alive."""
        return bool(shards) and not self._has_seen


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
