"""Copies the program's output to where it would have gone, and into a file."""

from __future__ import annotations

import os
import select
import threading
from typing import IO

_CHUNK = 65536


class Tee:
    """Passes the bytes of a pipe on as they come, from a thread of its own."""

    def __init__(self, pipe: IO[bytes], stream: int, copy: int) -> None:
        """Begin to copy.

        Args:
            pipe: What the program writes into; closed at its end.
            stream: The file descriptor to pass the bytes on to; if it goes away, copying goes on.
            copy: The file descriptor of the log.
        """
        self._pipe = pipe
        self._targets = [stream, copy]
        self._in_hand = False  # bytes that were read and not passed on yet
        self._passed_on = 0  # chunks
        self._thread = threading.Thread(target=self._run, name="traincheck-tee", daemon=True)
        self._thread.start()

    def finish(self, timeout: float) -> None:
        """Wait until all is copied, however slow its reader is.

        If nothing comes for `timeout` seconds, another process holds the pipe: it is left to it.
        """
        before = -1
        while self._thread.is_alive() and (self._in_hand or self._passed_on > before):
            before = self._passed_on
            self._thread.join(timeout)

    def _run(self) -> None:
        with self._pipe:
            while data := os.read(self._pipe.fileno(), _CHUNK):
                self._in_hand = True
                self._targets = [target for target in self._targets if _write_all(target, data)]
                self._passed_on += 1
                self._in_hand = False


def _write_all(target: int, data: bytes) -> bool:
    """Write, and say whether the target still takes anything."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[_write(target, rest) :]
    except OSError:
        return False
    return True


def _write(target: int, data: memoryview) -> int:
    """Write what fits, and say how much that was; wait first if the target is full."""
    try:
        return os.write(target, data)
    except BlockingIOError:
        poll = select.poll()
        poll.register(target, select.POLLOUT)
        poll.poll()
        return 0
