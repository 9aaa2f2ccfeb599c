"""`--report-otel`: with OpenTelemetry's in-memory exporters, and over HTTP to a receiver here."""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_trace_schema.results_file import read_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Check

    from traincheck_check.reporting.api import Report

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("METRICS_EXPORTER", "LOGS_EXPORTER", "EXPORTER_OTLP_PROTOCOL", "SDK_DISABLED"):
        monkeypatch.delenv(f"OTEL_{name}", raising=False)


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    """Receive by OTLP over HTTP: gives the endpoint, and what came, by path."""
    received: defaultdict[str, list[bytes]] = defaultdict(list)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received[self.path].append(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


def values(attributes: Any) -> dict[str, Any]:
    """Return the attributes of OTLP as a dictionary."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def test_standard_environment_variables_say_where_it_goes(
    run_check: Check, bad_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metrics and events arrive over HTTP, from a service named as asked for."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (  # noqa: PLC0415  slow
        ExportLogsServiceRequest,
    )
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415
        ExportMetricsServiceRequest,
    )

    with receiver() as (endpoint, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
        result = run_check("-f", bad_run, "--report-otel")

    assert result.exit_code == 1, result.output
    assert not result.stderr
    (resource,) = ExportMetricsServiceRequest.FromString(
        received["/v1/metrics"][0]
    ).resource_metrics
    assert values(resource.resource.attributes)["service.name"] == "nightly"
    (scope,) = resource.scope_metrics
    metrics = {each.name: each for each in scope.metrics}
    assert metrics["traincheck.checks.failed"].gauge.data_points[0].as_int == 1
    assert metrics["traincheck.coverage.applied_pct"].gauge.data_points[0].as_double == 75
    assert metrics["traincheck.violations"].sum.data_points[0].as_int == 3
    (logs,) = ExportLogsServiceRequest.FromString(received["/v1/logs"][0]).resource_logs
    events = {each.event_name: each for each in logs.scope_logs[0].log_records}
    assert events.keys() == {
        "traincheck.violation",
        "traincheck.violation_group",
        "traincheck.verdict",
    }
    violation = events["traincheck.violation"]
    assert "model.fc2.weight" in violation.body.string_value
    about = values(violation.attributes)
    assert (about["traincheck.step"], about["traincheck.invariant_id"]) == (3, "moves-each")
    assert (about["code.file.path"], about["code.line.number"]) == ("train.py", 10)


def test_a_live_run_is_told_while_it_goes_on(live_reports: list[Report]) -> None:
    """The counter only rises, and each violation is one event."""
    from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415  slow
    from opentelemetry.sdk._logs.export import (  # noqa: PLC0415
        InMemoryLogRecordExporter,
        SimpleLogRecordProcessor,
    )
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415

    from traincheck_check.reporting.exporters.otel_pipeline import Pipeline  # noqa: PLC0415
    from traincheck_check.reporting.exporters.otel_signals import Signals  # noqa: PLC0415

    reader, exporter = InMemoryMetricReader(), InMemoryLogRecordExporter()
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    sink = Signals(Pipeline(MeterProvider([reader], shutdown_on_exit=False), logs), "live")
    counts, broken = [], []
    for report in live_reports:
        sink.update(report)
        (resource,) = reader.get_metrics_data().resource_metrics
        metrics = {each.name: each.data.data_points for each in resource.scope_metrics[0].metrics}
        counts.append([each.value for each in metrics.get("traincheck.violations", ())])
        broken += [each.value for each in metrics["traincheck.checks.failed"]]
    told = [each.log_record.event_name for each in exporter.get_finished_logs()]
    sink.close()

    assert counts == [[], [2], [2], [5]]
    assert broken == [0, 1, 1, 1]
    assert told == ["traincheck.violation", "traincheck.violation_group", "traincheck.verdict"]


def test_what_others_log_is_none_of_ours(
    run_check: Check, bad_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The libraries of other exporters use OpenTelemetry too, and may fail to send."""
    from opentelemetry.exporter.otlp.proto.http import metric_exporter  # noqa: PLC0415  slow

    class Receiver(metric_exporter.OTLPMetricExporter):
        def export(self, *args: Any, **more: Any) -> Any:
            other = threading.Thread(target=metric_exporter._logger.error, args=("not ours",))
            other.start()
            other.join()
            return super().export(*args, **more)

    monkeypatch.setattr(metric_exporter, "OTLPMetricExporter", Receiver)
    with receiver() as (endpoint, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        result = run_check("-f", bad_run, "--report-otel")

    assert received.keys() == {"/v1/metrics", "/v1/logs"}
    assert not result.stderr


@pytest.mark.parametrize("status", [None, 400])
def test_a_service_that_fails_costs_no_results(
    run_check: Check, bad_run: Path, status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens, or it is refused: it is told in one line, and the check goes on."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")

    with receiver(status or 200) as (endpoint, _):
        address = endpoint if status else "http://127.0.0.1:9"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        result = run_check("-f", bad_run, "--report-otel")

    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("warning: reporter otel failed, and is left out: OSError")
    assert len(result.stderr.splitlines()) == 1
    assert read_summary(Path("results/violations_summary.json")).failed == 1


def test_an_exporter_that_raises_costs_no_results(
    run_check: Check, bad_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry would only log it."""
    from opentelemetry.exporter.otlp.proto.http import metric_exporter  # noqa: PLC0415  slow

    class Broken(metric_exporter.OTLPMetricExporter):
        def export(self, *_: Any, **__: Any) -> Any:
            raise ValueError("it is broken")

    monkeypatch.setattr(metric_exporter, "OTLPMetricExporter", Broken)
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")

    result = run_check("-f", bad_run, "--report-otel")

    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: reporter otel failed, and is left out")
    assert line.endswith("ValueError: it is broken")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        (("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"), "must be one of"),
        (("OTEL_METRICS_EXPORTER", "carrier_pigeon"), "is not installed"),
    ],
)
def test_settings_that_can_not_be_are_told_at_once(
    run_check: Check,
    bad_run: Path,
    setting: tuple[str, str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is checked, in one line."""
    monkeypatch.setenv(*setting)

    result = run_check("-f", bad_run, "--report-otel")

    assert result.exit_code == 2, result.output
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1
