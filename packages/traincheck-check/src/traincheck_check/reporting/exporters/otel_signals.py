"""What is told through OpenTelemetry: figures as gauges, violations as a counter and as events."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.exporters.library import imported
from traincheck_check.reporting.exporters.metrics import metrics_of
from traincheck_check.reporting.screen import verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traincheck_check.reporting.api import Report
    from traincheck_check.reporting.exporters.otel_pipeline import Pipeline
    from traincheck_trace_schema.results import Violation, ViolationGroup


@attrs.define
class _Told:
    """What was told of a run so far."""

    violations: Counter[str] = attrs.field(factory=Counter)  # by relation
    broken: set[str] = attrs.field(factory=set)  # ids


class Signals:
    """A sink that sends metrics and events."""

    def __init__(self, pipeline: Pipeline, mode: str) -> None:
        self._pipeline = pipeline
        self._mode = mode
        self._meter, self._logger = pipeline.meter(), pipeline.logger()
        self._record = imported("opentelemetry._logs", extra="otel").LogRecord
        self._severity = imported("opentelemetry._logs", extra="otel").SeverityNumber
        self._gauges: dict[str, Any] = {}
        self._violations = self._meter.create_counter(
            "traincheck.violations", description="Occasions on which an invariant was broken"
        )
        self._told: dict[str, _Told] = {}

    def update(self, report: Report) -> None:
        """Send what is new of a run.

        Raises:
            OSError: What was sent before has not arrived.
        """
        self._pipeline.check()
        summary = report.outcome.summary
        told = self._told.setdefault(report.name, _Told())
        about = {"traincheck.run": report.name, "traincheck.mode": self._mode}
        for name, value in metrics_of(summary).items():
            self._gauge(name).set(value, about)
        self._count(report, told, about)
        for each in summary.violations:
            if each.invariant_id not in told.broken:
                told.broken.add(each.invariant_id)
                self._tell_violation(each, about)
        if not summary.running:
            for group in summary.groups:
                attributes = {**about, **dict(_of_group(group))}
                self._emit("traincheck.violation_group", group.diagnosis, "WARN", attributes)
            level = "INFO" if summary.complete and not summary.failed else "WARN"
            self._emit("traincheck.verdict", verdict_line(report), level, about)

    def close(self) -> None:
        """Send what is left.

        Raises:
            OSError: Not all has arrived.
        """
        self._pipeline.close()

    def _gauge(self, name: str) -> Any:
        if name not in self._gauges:
            unit = "%" if name.endswith("_pct") else ""
            dotted = f"traincheck.{name.replace('/', '.')}"
            self._gauges[name] = self._meter.create_gauge(dotted, unit)
        return self._gauges[name]

    def _count(self, report: Report, told: _Told, about: Mapping[str, str]) -> None:
        now: Counter[str] = Counter()
        for each in report.outcome.summary.violations:
            now[each.relation] += each.occurrences
        for relation, count in (now - told.violations).items():
            self._violations.add(count, {**about, "traincheck.relation": relation})
        told.violations = now

    def _tell_violation(self, violation: Violation, about: Mapping[str, str]) -> None:
        body = violation.happened or f"Broken: {violation.text_description}"
        attributes = {**about, **dict(_of_violation(violation))}
        level = "WARN" if violation.known else "ERROR"
        self._emit("traincheck.violation", body, level, attributes)

    def _emit(self, name: str, body: str, level: str, attributes: Mapping[str, Any]) -> None:
        severity = self._severity[level]
        self._logger.emit(
            self._record(
                severity_number=severity,
                severity_text=level,
                body=body,
                attributes=attributes,
                event_name=name,
            )
        )


def _of_violation(violation: Violation) -> Iterator[tuple[str, str | int | bool]]:
    first = violation.first
    yield "traincheck.invariant_id", violation.invariant_id
    yield "traincheck.relation", violation.relation
    yield "traincheck.expected", violation.text_description
    yield "traincheck.step", first.step
    yield "traincheck.stage", first.stage
    yield "traincheck.rank", first.rank
    yield "traincheck.known", violation.known
    if first.function is not None:
        yield "traincheck.function", first.function
    if first.variable is not None:
        yield "traincheck.variable", first.variable
    file, _, line = (first.source or "").rpartition(":")
    if file and line.isdecimal():
        yield "code.file.path", file
        yield "code.line.number", int(line)


def _of_group(group: ViolationGroup) -> Iterator[tuple[str, str | int]]:
    yield "traincheck.group", group.id
    yield "traincheck.title", group.title
    yield "traincheck.look_at", group.look_at
    yield "traincheck.step", group.first.step
    yield "traincheck.rank", group.first.rank
    yield "traincheck.invariants", len(group.invariant_ids)
