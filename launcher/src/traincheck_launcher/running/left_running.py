"""What a shell script leaves running when it ends: `python train.py &` goes on training."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import attrs

from traincheck_trace_schema.cli import note

_BEGINNING_SECONDS = 20.0  # until a program that was just started has a trace
_ANOTHER_SECONDS = 5.0  # where one was recorded: what is left is most likely something else
_LOOK_SECONDS = 0.2
_ENDED = frozenset("ZX")  # states of processes, as Linux tells them
_SHARD = re.compile(r"trace_r\d+_p(\d+)")


@attrs.frozen
class LeftRunning:
    """Waits for recorded processes that outlive what has started them."""

    folder: Path  # where their traces are

    def wait(self, group: int) -> None:
        """Wait while one of a process group is recorded, or may be about to be."""
        has_any = any(self.folder.glob("trace_*"))
        until = time.monotonic() + (_ANOTHER_SECONDS if has_any else _BEGINNING_SECONDS)
        is_told = False
        while _is_alive(group):
            if self._is_recorded(group):
                if not is_told:
                    note("a recorded program still runs that was left behind; waiting for its end")
                is_told = True
            elif is_told or time.monotonic() > until:
                return
            time.sleep(_LOOK_SECONDS)

    def _is_recorded(self, group: int) -> bool:
        names = (_SHARD.match(path.name) for path in self.folder.glob("trace_*"))
        processes = [int(name[1]) for name in names if name is not None]
        return any(_group_of(each) == group and not _has_ended(each) for each in processes)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _has_ended(process: int) -> bool:
    """Whether a process only waits for its parent to take note: in a container maybe for ever."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # there is no such folder: then nobody can tell
        return False
    return told.rpartition(")")[2].split()[0] in _ENDED


def _group_of(process: int) -> int | None:
    try:
        return os.getpgid(process)
    except OSError:
        return None
