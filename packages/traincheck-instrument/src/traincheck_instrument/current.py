"""The recording of this process, for the marks; imports nothing, torch least of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincheck_instrument.recorder.recorder import Recorder
    from traincheck_instrument.session import Session


class Current:
    """The session of this process, if one is at work."""

    session: Session | None = None
    marks_steps_in_source: bool = False  # a file that was rewritten begins steps


def recorder() -> Recorder | None:
    """Return the recorder that is at work in this process."""
    return None if Current.session is None else Current.session.recorder
