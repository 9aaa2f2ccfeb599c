"""Keeps a service that is slow, or does not answer, from holding up the check of a run."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincheck_check.reporting.api import Report, Session, Sink


def beside_the_check(sink: Sink, session: Session) -> Sink:
    """Return a sink that is told in a thread of its own, if the session follows a run."""
    return BackgroundSink(sink) if session.mode == "live" else sink


class BackgroundSink:
    """Tells another sink in a thread: the latest of each run, when that has time for it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._waiting: dict[str, Report] = {}
        self._is_over = False
        self._error: Exception | None = None
        self._change = threading.Condition()
        # A daemon: whoever asks a second time for the end does not wait for a service.
        self._thread = threading.Thread(target=self._work, name="traincheck-export", daemon=True)
        self._thread.start()

    def update(self, report: Report) -> None:
        """Have the latest of a run told; what was not told yet of it before is left out.

        Raises:
            Exception: What the sink raised before.
        """
        with self._change:
            self._raise()
            self._waiting[report.name] = report
            self._change.notify()

    def close(self) -> None:
        """Wait until all is told, and end.

        Raises:
            Exception: What the sink raised.
        """
        with self._change:
            self._is_over = True
            self._change.notify()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            while reports := self._next():
                for report in reports:
                    self._sink.update(report)
            self._sink.close()
        except Exception as error:  # noqa: BLE001  it is raised where it can be told
            self._error = error

    def _next(self) -> list[Report]:
        """Wait for reports, and return them; none at the end."""
        with self._change:
            self._change.wait_for(lambda: self._waiting or self._is_over)
            reports = [*self._waiting.values()]
            self._waiting.clear()
            return reports
