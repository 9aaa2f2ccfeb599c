"""Begins a recording where a program imports torch; whatever goes wrong, the program goes on."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from traincheck_instrument.api.imports import ImportFollower
from traincheck_instrument.current import Current
from traincheck_instrument.program.after_import import AfterImport
from traincheck_instrument.recorder.interruptions import is_interruption
from traincheck_trace_schema.errors import DEBUG

if TYPE_CHECKING:
    from traincheck_instrument.settings import RecordingSettings


class Beginning:
    """Begins to record this process, or one forked from it before torch was there."""

    def __init__(self, settings: RecordingSettings, *, is_child: bool = False) -> None:
        """Prepare to record.

        Args:
            settings: How it is done.
            is_child: A process that is recorded has started this one.
        """
        self._settings = settings
        self._is_child = is_child
        self._process = os.getpid()

    def install(self) -> None:
        """Wait for torch; begin now if the program has it."""
        ImportFollower.follow(self._settings.modules)  # some may be imported before torch
        AfterImport("torch", self._begin).install()

    def _begin(self) -> None:
        try:
            from traincheck_instrument import session  # noqa: PLC0415  it imports torch

            is_worker = self._is_child or os.getpid() != self._process
            session.begin(self._settings, is_worker=is_worker)
        except Exception as error:  # noqa: BLE001  a fault of ours never stops the program
            tell("recording could not begin, the program runs without it", error)


def tell_failure(error: BaseException) -> None:
    """Leave behind how the program failed, if this process is recorded."""
    if Current.session is None:
        return
    try:
        Current.session.tell_failure(error)
    except Exception as fault:  # noqa: BLE001  a fault of ours never reaches the program
        tell("how the program failed could not be told", fault)


def end(*, is_clean: bool) -> None:
    """End the recording of this process, if there is one."""
    if Current.session is None:
        return
    try:
        from traincheck_instrument import session  # noqa: PLC0415  see above

        session.end(clean=is_clean)
    except Exception as error:  # noqa: BLE001  a fault of ours never reaches the program
        tell("recording could not be ended", error)


def tell(what: str, error: Exception) -> None:
    """Say what went wrong on stderr, unless the program has cut in; call it in an except block."""
    if is_interruption(error):
        raise error
    sys.stderr.write(f"traincheck: {what}: {type(error).__name__}: {error}\n")
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
