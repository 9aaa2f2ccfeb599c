"""The ranks of a run that is followed: which of them a window waits for."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from traincheck_trace_schema.reading.attendance import absent_ranks, named_ranks
from traincheck_trace_schema.reading.followed import FollowedProcess
from traincheck_trace_schema.records import Header
from traincheck_trace_schema.window import Window

_TOLD = 3  # times that it is told of one rank


@attrs.define(eq=False)
class _Rank:
    """A rank that is there, and the main processes of its last restart, the newest last.

    The newest that has not ended speaks for it: programs start processes of a rank one after
    another, or one that only waits for others.
    """

    number: int
    mains: list[FollowedProcess] = attrs.field(factory=list)  # at least one
    words_before: int | None = None  # it is given up, until it has said more than this
    times: int = 0  # that it was given up

    @property
    def words(self) -> int:
        return sum(1 + process.words for process in self.mains)

    @property
    def heard(self) -> float:
        return max(process.heard for process in self.mains)

    @property
    def has_ended(self) -> bool:
        return all(each.has_ended and each.findings.has_footer for each in self.mains)

    def add(self, process: FollowedProcess) -> None:
        """Take a main process that is newer than those that are known."""
        if self.mains and self.mains[-1].header.restart < process.header.restart:
            self.mains.clear()
        self.mains.append(process)

    def speaker(self) -> FollowedProcess | None:
        return next((each for each in reversed(self.mains) if not each.has_ended), None)

    def holds(self, window: Window) -> bool:
        """Whether it may still write in this window."""
        speaker = self.speaker() if self.words_before is None else None
        return speaker is not None and speaker.reach <= window

    def has_passed(self, window: Window) -> bool:
        """Whether it has gone on to a later window, or ended cleanly."""
        speaker = self.speaker()
        return self.has_ended if speaker is None else speaker.reach > window


@attrs.define(eq=False)
class Ranks:
    """Which ranks a window waits for, and which were given up.

    A rank holds a window open until it begins a later one, ends, or is given up: when it has been
    silent for longer than `rank_timeout` since another rank went on. Ranks that are silent together
    are not. One that is not there yet is silent.
    """

    rank_timeout: float
    clock: Callable[[], float]
    notes: list[str] = attrs.field(init=False, factory=list)
    is_closing: bool = attrs.field(init=False, default=False)  # nobody is waited for any more
    _processes: list[FollowedProcess] = attrs.field(init=False, factory=list)
    _headers: list[Header] = attrs.field(init=False, factory=list)  # as they were last seen
    _mains: list[FollowedProcess] = attrs.field(init=False, factory=list)
    _ranks: dict[int, _Rank] = attrs.field(init=False, factory=dict)
    _restart: int = attrs.field(init=False, default=0)  # the last
    _world: range = attrs.field(init=False, default=range(0))
    _absent: int = attrs.field(init=False, default=0)  # ranks of the world that are not there
    _awaits_absent: bool = attrs.field(init=False, default=True)
    _known: tuple[list[Header], list[bool]] | None = attrs.field(init=False, default=None)
    _without: tuple[int, ...] = attrs.field(init=False, default=())  # as of what is known
    _overtaken: tuple[Window, float] | None = attrs.field(init=False, default=None)

    @property
    def have_ended(self) -> bool:
        """Whether each rank of the world wrote its footer."""
        is_there = bool(self._ranks) and not self._absent
        return is_there and all(rank.has_ended for rank in self._ranks.values())

    def add(self, process: FollowedProcess) -> None:
        """Take note of a process."""
        self._processes.append(process)
        self._headers.append(process.header)
        if process.header.role == "main":
            self._arrange()

    def hear(self, process: FollowedProcess) -> None:
        """Take note of what a process may have told of itself since."""
        if process.header is not self._headers[process.index]:
            self._headers[process.index] = process.header
            if process.header.role == "main":
                self._arrange()

    def welcome(self) -> None:
        """Wait again for ranks that were given up, and have spoken since."""
        for rank in self._ranks.values():
            if rank.words_before is not None and rank.words > rank.words_before:
                rank.words_before = None
                step = max(process.reach.step for process in rank.mains)
                self._tell(rank, f"is heard again, in step {step}")

    def hold(self, window: Window) -> bool:
        """Whether a rank may still write in this window; gives up those that are overdue."""
        if self.is_closing:
            return False
        holding = [rank for rank in self._ranks.values() if rank.holds(window)]
        is_held = bool(holding) or self._awaits_absent
        if not is_held or not any(rank.has_passed(window) for rank in self._ranks.values()):
            return is_held
        now = self.clock()
        if self._overtaken is None or self._overtaken[0] != window:
            self._overtaken = window, now
        since = self._overtaken[1]
        for rank in holding:
            if now - max(since, rank.heard) > self.rank_timeout:
                self._give_up(rank, window)
        if self._awaits_absent and now - since > self.rank_timeout:
            self._give_up_absent(window)
        return self._awaits_absent or any(rank.holds(window) for rank in holding)

    def awaited(self, window: Window) -> tuple[int, ...]:
        """Return the ranks of the world that may still write in a window."""
        absent = self._world if self._awaits_absent else ()
        numbers = (number for number in absent if number not in self._ranks)
        holding = (rank.number for rank in self._ranks.values() if rank.holds(window))
        return () if self.is_closing else tuple(sorted((*holding, *numbers)))

    def without(self, window: Window) -> tuple[int, ...]:
        """Return the ranks of the world that took no part in a window, or not to its end."""
        facts = (
            [each.header for each in self._mains],
            [self._is_gone(each, window) for each in self._mains],
        )
        if facts != self._known:
            self._known = facts
            self._without = absent_ranks(zip(*facts, strict=True))
        return self._without

    def _is_gone(self, process: FollowedProcess, window: Window) -> bool:
        if process.findings.has_footer or process.reach > window:
            return False
        rank = self._ranks.get(process.header.rank)
        is_given_up = rank is not None and rank.words_before is not None
        return is_given_up or process.reach <= window

    def _arrange(self) -> None:
        """Sort the processes by rank, as their last headers say."""
        self._mains = [each for each in self._processes if each.header.role == "main"]
        restart = max(each.header.restart for each in self._mains)
        of_last = (each for each in self._mains if each.header.restart == restart)
        size = max(each.header.world_size for each in of_last)
        ranks: dict[int, _Rank] = {}
        for process in sorted(self._mains, key=_age):
            number = process.header.rank
            if number < size and number not in ranks:
                ranks[number] = self._ranks.get(number) or _Rank(number)
                ranks[number].mains = []
            if number < size:
                ranks[number].add(process)
        if restart != self._restart or size != len(self._world) or self._awaits_absent:
            self._awaits_absent = len(ranks) < size
        self._ranks, self._restart, self._world = ranks, restart, range(size)
        self._absent = size - len(ranks)

    def _give_up(self, rank: _Rank, window: Window) -> None:
        rank.words_before = rank.words
        rank.times += 1
        self._tell(rank, f"was silent {self._how_long(window)}")

    def _give_up_absent(self, window: Window) -> None:
        self._awaits_absent = False
        absent = [number for number in self._world if number not in self._ranks]
        self.notes.append(f"{named_ranks(absent)}: left no trace {self._how_long(window)}")

    def _how_long(self, window: Window) -> str:
        return (
            f"for more than {self.rank_timeout:g} s in step {window.step}, while others went on; "
            "windows end without waiting"
        )

    def _tell(self, rank: _Rank, what: str) -> None:
        if rank.times <= _TOLD:
            self.notes.append(f"rank {rank.number}: {what}")


def _age(process: FollowedProcess) -> tuple[int, int, int]:
    return process.header.restart, process.header.clock.wall_ns, process.index
