"""How the ranks of a job agree where they stop: all before the same pass through the training loop.

Ranks that compute together wait for one another within a pass: if one stopped where another goes
on, that one would wait for ever. They tell each other through the store by which torch.distributed
has brought them together. Passes are counted in each rank; one is a step, or a micro-batch of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
from torch import distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PAUSE_SECONDS = 0.005
_PATIENCE_SECONDS = 60.0  # with a rank that tells nothing: it may be dead
_LEAVING_SECONDS = 5.0  # until others have written their traces

State: TypeAlias = Literal["passed", "paused", "left"]


@attrs.frozen
class _Standing:
    """Where a rank is, by what it told last."""

    state: str
    number: int

    @classmethod
    def of(cls, text: str) -> _Standing:
        state, _, number = text.partition(" ")
        return cls(state, int(number))

    def has_gone_on(self, number: int) -> bool:
        """Whether it has begun a pass, so that it may wait for others there."""
        last_begun = self.number if self.state == "passed" else self.number - 1
        return self.state != "left" and last_begun >= number

    def waits_before(self, number: int) -> bool:
        """Whether it waits before the same pass, or will make none any more."""
        return self.state == "left" or (self.state == "paused" and self.number == number)


class Peers:
    """The other ranks of the job; a process that is in none is on its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def tell(self, state: State, number: int) -> None:
        """Tell the others where this rank is, if there are some."""
        store = _store()
        if store is not None:
            store.set(_key(distributed.get_rank()), f"{state} {number}")

    def agree_to_stop(self, number: int) -> bool:
        """Whether all stop before this pass; False: one has begun it, so this rank has to, too.

        Waits until each other rank has come here, has gone on, or has left. If it can't be known,
        since a rank is gone or silent, this one stops.
        """
        until = self._clock() + _PATIENCE_SECONDS
        try:
            self.tell("paused", number)
            while self._clock() < until:
                others = list(self._others())
                if any(each is not None and each.has_gone_on(number) for each in others):
                    return False
                if all(each is not None and each.waits_before(number) for each in others):
                    return True
                time.sleep(_PAUSE_SECONDS)
        except (RuntimeError, ValueError):  # of the store: who held it has ended
            return True
        return True

    def leave(self, number: int) -> None:
        """Tell that this rank is done, and wait for the others, but not long.

        torchrun ends the others as soon as one ends, and their traces are to be whole.
        """
        until = self._clock() + _LEAVING_SECONDS
        try:
            self.tell("left", number)
            while self._clock() < until:
                if all(each is not None and each.state == "left" for each in self._others()):
                    return
                time.sleep(_PAUSE_SECONDS)
        except (RuntimeError, ValueError):
            return

    def _others(self) -> Iterator[_Standing | None]:
        """Yield where each other rank is; None: it has told nothing."""
        store = _store()
        if store is None:
            return
        own = distributed.get_rank()
        for rank in range(distributed.get_world_size()):
            if rank != own:
                key = _key(rank)
                told = store.check([key])
                yield _Standing.of(store.get(key).decode()) if told else None


def _store() -> Any:
    """Return the store of a job with several ranks; None if there is none.

    It is not kept: the program may end the job and begin another, at the same port.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    if distributed.get_world_size() == 1:
        return None
    return distributed.distributed_c10d._get_default_store()  # noqa: SLF001  nothing public gives it


def _key(rank: int) -> str:
    return f"traincheck/{rank}"
