"""Has what was recorded written before a process leaves without coming to its end.

`os._exit` ends a process at once, `os.exec*` puts another program into it: neither runs `atexit`,
and what waits in memory to be written would be lost. A call of the C function can't be seen.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_instrument.recorder.faults import Faults
    from traincheck_instrument.sink.shard import Shard

# `os.execl`, `os.execvp` and the others call one of these two.
_WAYS_OUT = ("_exit", "execv", "execve")
_SECONDS = 5.0  # a disk that takes longer does not hold up the program


class Leaving:
    """Wraps the ways out of a process. `install` and `uninstall` may be called twice."""

    def __init__(self, shard: Shard, faults: Faults) -> None:
        self._shard = shard
        self._faults = faults
        self._replaced: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}

    def install(self) -> None:
        """Write what there is before the process leaves."""
        for name in _WAYS_OUT:
            if name not in self._replaced:
                original = getattr(os, name)
                ours = self._after_writing(original)
                self._replaced[name] = original, ours
                setattr(os, name, ours)

    def uninstall(self) -> None:
        """Let the process leave as before."""
        for name, (original, ours) in self._replaced.items():
            if getattr(os, name) is ours:
                setattr(os, name, original)
        self._replaced.clear()

    def _after_writing(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(leave)
        def leave_after_writing(*args: Any, **kwargs: Any) -> Any:
            try:
                self._shard.write_out(_SECONDS)
            except Exception as error:  # noqa: BLE001  the program leaves in any case
                self._faults.contain("what was recorded last", error)
            return leave(*args, **kwargs)

        return leave_after_writing
