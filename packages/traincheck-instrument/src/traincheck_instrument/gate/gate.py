"""Where a run that is checked while it goes on waits for the verdict, and stops if it is bad."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import attrs

from traincheck_instrument.gate.peers import Peers
from traincheck_instrument.gate.stopping import StopNote, StoppedByCheck
from traincheck_instrument.gate.verdicts import Verdicts
from traincheck_instrument.recorder.work import Work
from traincheck_instrument.settings import Guard
from traincheck_instrument.sink.shard import Shard

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.0003, 0.005
_DISK_SECONDS = 10.0  # that writing may take
_SILENCE_SECONDS = 10.0  # of a check, after which it is not waited for
_OTHERS_SECONDS = 10.0  # that the verdict on a step may wait for other ranks
_OTHERS_SAVING_SECONDS = 1.0  # the same before a checkpoint, for which others may be waiting


@attrs.frozen
class _Told:
    """A record of this process that is on disk, and the size of its file then."""

    shard: str
    seq: int
    size: int


@attrs.define(eq=False, kw_only=True)
class Gate:
    """What the training passes at the begin of each step, and, in lockstep, before it saves.

    A verdict that doesn't come never holds the training for long: the check may have been ended.
    """

    guard: Guard
    verdicts: Verdicts
    shard: Shard
    work: Work
    rank: Callable[[], int]
    close: Callable[[], None]  # the trace, with its footer
    peers: Peers = attrs.field(factory=Peers)
    _has_told: set[str] = attrs.field(init=False, factory=set)
    _passes: int = attrs.field(init=False, default=0)  # through the body of the training loop
    _is_stopped: bool = attrs.field(init=False, default=False)
    _left_behind: _Told | None = attrs.field(init=False, default=None)  # while others were awaited

    def begin_step(self, step: int, micro_step: int) -> None:
        """Go on with a step, or with a micro-batch of one, that is about to be made.

        Raises:
            StoppedByCheck: it is not to be made.
        """
        self._passes += 1
        if self._is_stopped or self._judges(self._ends):
            self._stop(StopNote(step=step, before="micro-batch" if micro_step else "step"))

    def save(self, step: int) -> None:
        """Go on with writing a checkpoint.

        Raises:
            StoppedByCheck: it is not to be written.
        """
        if self._is_stopped or (self.guard.lockstep and self._judges(self._spoils_checkpoint)):
            self._stop(StopNote(step=step, before="checkpoint"))

    def leave(self) -> None:
        """Tell the other ranks that this one makes no step any more."""
        self.work.take("leaving the other ranks", lambda: self.peers.tell("left", self._passes))

    def _judges(self, decide: Callable[[], bool]) -> bool:
        """Return what is decided; a fault of ours stops nothing."""
        decided: list[bool] = []
        self.work.take("the verdict of the check", lambda: decided.append(decide()))
        return decided == [True]

    def _ends(self) -> bool:
        if self.guard.lockstep:
            self._await_verdict(_OTHERS_SECONDS)
        self.verdicts.look()
        if self.verdicts.fails and self.peers.agree_to_stop(self._passes):
            return True
        self.peers.tell("passed", self._passes)
        return False

    def _spoils_checkpoint(self) -> bool:
        self._await_verdict(_OTHERS_SAVING_SECONDS)
        return self.verdicts.fails

    def _stop(self, note: StopNote) -> None:
        if not self._is_stopped:  # else the program has caught it, and goes on
            self._is_stopped = True
            self.work.take("the note of the stop", lambda: note.write(self.guard.progress))
            self.close()
            self.work.take("leaving the other ranks", lambda: self.peers.leave(self._passes))
        raise StoppedByCheck

    def _await_verdict(self, others_seconds: float) -> None:
        """Wait until what this process has told so far is judged."""
        told = self._written()
        if told is None:
            return
        if self._left_behind is not None and self._is_judged(self._left_behind):
            self._left_behind = None
        begun, pause = time.monotonic(), _FIRST_PAUSE_SECONDS
        patience = others_seconds if self._left_behind is None else 0.0
        while not self._is_judged(told):
            if self.verdicts.has_ended:
                return
            if self.verdicts.silent_seconds > _SILENCE_SECONDS:
                self._tell("the check does not answer; training goes on unchecked")
                return
            if self._waits_for_others(told) and time.monotonic() - begun >= patience:
                self._left_behind = self._left_behind or told
                return
            time.sleep(pause)
            pause = min(1.1 * pause, _LONGEST_PAUSE_SECONDS)
            self.verdicts.look()

    def _written(self) -> _Told | None:
        """Have all written that is told so far; None if not all of it can be."""
        seq = self.shard.write_out(_DISK_SECONDS)
        return None if seq is None else _Told(self.shard.path.name, seq, self.shard.size)

    def _is_judged(self, told: _Told) -> bool:
        judged = self.verdicts.of(told.shard)
        return judged is not None and judged.seq >= told.seq

    def _waits_for_others(self, told: _Told) -> bool:
        """Whether all of it was read, and the verdict waits for other ranks."""
        judged = self.verdicts.of(told.shard)
        is_read = judged is not None and judged.size >= told.size
        return is_read and self.verdicts.waits_for_others(self.rank())

    def _tell(self, what: str) -> None:
        if what not in self._has_told:
            self._has_told.add(what)
            sys.stderr.write(f"traincheck: {what}\n")
