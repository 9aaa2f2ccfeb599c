"""Ctrl-C and SIGTERM as a request: what goes on may come to its end, and write what it has."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While it is entered, the first of these signals is a request; a second one acts as before."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._before: dict[signal.Signals, Any] = {}

    @property
    def is_asked_for(self) -> bool:
        """Whether somebody asked for the end."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep, until somebody asks for the end."""
        self._asked.wait(seconds)

    def __enter__(self) -> Interruption:  # noqa: PYI034  Self is of Python 3.11
        # Elsewhere than in the main thread no handler can be set, and none is needed.
        if threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                self._before[each] = signal.signal(each, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._asked.set()
        self._restore()

    def _restore(self) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._before.clear()
