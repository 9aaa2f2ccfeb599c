"""Who is at work in an output folder: commands that take part in one run share it, others don't.

The kernel gives the locks of a process back when it ends, however it does. Where the file system
knows no locks, nobody is seen.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = ".traincheck.lock"
_PREPARING, _AT_WORK = 0, 1  # the bytes of the file that are locked


class Occupancy:
    """The locks of this process on a folder."""

    def __init__(self, folder: Path) -> None:
        """Open the file with the locks.

        Raises:
            OSError: the folder cannot be written.
        """
        self._path = folder / NAME
        self._file = self._open()

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Hold off all others that are about to use the folder."""
        while True:
            self._lock(fcntl.LOCK_EX, _PREPARING)
            if os.fstat(self._file).st_nlink:
                break
            os.close(self._file)  # the one who left last has deleted it meanwhile
            self._file = self._open()
        try:
            yield
        finally:
            self._lock(fcntl.LOCK_UN, _PREPARING)

    def is_occupied(self) -> bool:
        """Whether another process is at work in the folder."""
        if not self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, _AT_WORK):
            return True
        self._lock(fcntl.LOCK_UN, _AT_WORK)
        return False

    def enter(self) -> None:
        """Be at work in the folder from now on."""
        self._lock(fcntl.LOCK_SH, _AT_WORK)

    def is_last(self) -> bool:
        """Whether no other process is at work in the folder any more; this one is still."""
        if not self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, _AT_WORK):
            return False
        self._lock(fcntl.LOCK_SH, _AT_WORK)
        return True

    def is_last_to_end(self) -> bool:
        """Whether no other is at work there any more; otherwise this one is at work no more.

        So exactly one of those that ask is the last.
        """
        with self.preparing():
            is_last = self.is_last()
            if not is_last:
                self._lock(fcntl.LOCK_UN, _AT_WORK)
        return is_last

    def leave(self) -> bool:
        """Be at work there no more, and say whether this was the last; it takes the file away."""
        alone = fcntl.LOCK_EX | fcntl.LOCK_NB
        is_last = self._lock(alone, _PREPARING) and self._lock(alone, _AT_WORK)
        with contextlib.suppress(OSError):
            if is_last:
                self._path.unlink(missing_ok=True)
            os.close(self._file)
        return is_last

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)

    def _lock(self, kind: int, byte: int) -> bool:
        """Lock a byte, and say whether that was possible."""
        try:
            fcntl.lockf(self._file, kind, 1, byte)
        except (BlockingIOError, PermissionError):  # as POSIX says that another holds it
            return False
        except OSError:
            return True
        return True
