"""Services are told beside the check of a run that goes on."""

from __future__ import annotations

import threading

import attrs
import pytest

from traincheck_check.reporting.api import Report
from traincheck_check.reporting.exporters.background import BackgroundSink


@attrs.define
class Service:
    """A sink that answers when it may, and fails at its `fails_at`-th report."""

    told: list[Report] = attrs.field(factory=list)
    fails_at: int | None = None
    is_closed: bool = False
    is_called: threading.Event = attrs.field(factory=threading.Event)
    may_answer: threading.Event = attrs.field(factory=threading.Event)

    def update(self, report: Report) -> None:
        self.is_called.set()
        self.may_answer.wait(60)
        self.told.append(report)
        if len(self.told) == self.fails_at:
            raise OSError("it is down")

    def close(self) -> None:
        self.is_closed = True


def test_a_slow_service_holds_up_nothing(live_reports: list[Report]) -> None:
    """While it does not answer the check goes on; then it is told the latest, and the last."""
    service = Service()
    sink = BackgroundSink(service)

    sink.update(live_reports[0])
    assert service.is_called.wait(60)
    for report in live_reports[1:]:
        sink.update(report)
    assert not service.told
    service.may_answer.set()
    sink.close()

    assert service.told == [live_reports[0], live_reports[-1]]
    assert service.is_closed


def test_what_a_service_raises_is_raised(live_reports: list[Report]) -> None:
    """At the next report or at the end, so that the session tells it and drops it."""
    at_end, at_next = Service(fails_at=1), Service(fails_at=1)
    sink = BackgroundSink(at_end)
    sink.update(live_reports[0])
    at_end.may_answer.set()
    with pytest.raises(OSError, match="it is down"):
        sink.close()
    sink = BackgroundSink(at_next)
    sink.update(live_reports[0])
    at_next.may_answer.set()
    sink._thread.join(60)

    with pytest.raises(OSError, match="it is down"):
        sink.update(live_reports[1])

    assert not at_end.is_closed
