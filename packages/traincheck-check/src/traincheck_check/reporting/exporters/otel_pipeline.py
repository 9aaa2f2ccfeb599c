"""The way of OpenTelemetry's signals out of this process, as its environment variables say."""

from __future__ import annotations

import logging
import os
import threading
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.exporters.library import imported, one_line
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXTRA = "otel"
_NAME = "traincheck"  # of the service, where the environment gives none, and of the instruments
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


class Complaints(logging.Handler):
    """Keeps why exporters could not send: they raise nothing, they log.

    Others in this process may use OpenTelemetry too, and what theirs log is none of ours.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self._sending = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is logged while something of ours is sent; handlers run where it is logged."""
        if (logged := getattr(self._sending, "logged", None)) is not None:
            logged.append(record.getMessage())

    def watch(self, exporter: Any) -> Any:
        """Have an exporter's failures kept, and return it."""
        exporter.export = partial(self._export, exporter.export)
        return exporter

    def _export(self, export: Callable[..., Any], *args: Any, **more: Any) -> Any:
        logged = self._sending.logged = []
        try:
            result = export(*args, **more)
        except Exception as error:
            self.texts.append(one_line(error))
            raise
        finally:
            self._sending.logged = None
        if result.name != "SUCCESS":
            self.texts.append(logged[-1] if logged else "what was sent did not arrive")
        return result


@attrs.frozen
class Pipeline:
    """Where metrics and events go: a meter and a logger, and what sends."""

    meters: Any  # a MeterProvider
    events: Any  # a LoggerProvider
    complaints: Complaints = attrs.field(factory=Complaints)

    def __attrs_post_init__(self) -> None:
        """Listen to what is logged, which else would be printed."""
        logging.getLogger("opentelemetry").addHandler(self.complaints)

    @classmethod
    def of_environment(cls) -> Pipeline:
        """Set it up as the environment variables of OpenTelemetry say.

        Raises:
            ConfigError: It is not installed, or the variables are wrong.
        """
        metrics = imported("opentelemetry.sdk.metrics", extra=_EXTRA)
        reading = imported("opentelemetry.sdk.metrics.export", extra=_EXTRA)
        logs = imported("opentelemetry.sdk._logs", extra=_EXTRA)
        processing = imported("opentelemetry.sdk._logs.export", extra=_EXTRA)
        resources = imported("opentelemetry.sdk.resources", extra=_EXTRA)
        complaints = Complaints()
        named = resources.Resource({"service.name": _NAME})
        resource = named.merge(resources.OTELResourceDetector().detect())
        readers = [
            reading.PeriodicExportingMetricReader(complaints.watch(exporter))
            for exporter in _exporters("metrics", "OTEL_METRICS_EXPORTER")
        ]
        events = logs.LoggerProvider(resource, shutdown_on_exit=False)
        for exporter in _exporters("logs", "OTEL_LOGS_EXPORTER"):
            watched = complaints.watch(exporter)
            events.add_log_record_processor(processing.BatchLogRecordProcessor(watched))
        meters = metrics.MeterProvider(readers, resource, shutdown_on_exit=False)
        return cls(meters, events, complaints)

    def meter(self) -> Any:
        """Return what makes instruments."""
        return self.meters.get_meter(_NAME)

    def logger(self) -> Any:
        """Return what takes events."""
        return self.events.get_logger(_NAME)

    def check(self) -> None:
        """See whether all that was sent has arrived.

        Raises:
            OSError: It has not.
        """
        if self.complaints.texts:
            raise OSError(self.complaints.texts[0])

    def close(self) -> None:
        """Send what is left, and end.

        Raises:
            OSError: Not all has arrived.
        """
        try:
            for provider in (self.meters, self.events):
                provider.force_flush()
                self.check()  # if one can't be sent, the other won't either: each try takes long
        finally:
            for provider in (self.meters, self.events):
                provider.shutdown()
            logging.getLogger("opentelemetry").removeHandler(self.complaints)


def _exporters(signal: str, variable: str) -> Iterator[Any]:
    """Yield the exporters of a signal that the environment names, `otlp` if it names none."""
    for name in (os.environ.get(variable) or "otlp").split(","):
        if (known := name.strip()) != "none":
            yield _exporter(signal, _of_protocol(signal) if known == "otlp" else known)


def _of_protocol(signal: str) -> str:
    variables = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next(filter(None, map(os.environ.get, variables)), "http/protobuf")
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"{variables[1]} must be one of {[*_PROTOCOLS]}, got {protocol!r}")
    return _PROTOCOLS[protocol]


def _exporter(signal: str, name: str) -> Any:
    found = [*entry_points(group=f"opentelemetry_{signal}_exporter", name=name)]
    if not found:
        package = f"opentelemetry-exporter-{name.replace('_', '-')}"
        raise ConfigError(
            f"OpenTelemetry's exporter {name!r} of {signal} is not installed; "
            f"pip install 'traincheck-check[{_EXTRA}]', or {package}"
        )
    try:
        return found[0].load()()
    except Exception as error:
        raise ConfigError(f"OpenTelemetry's exporter {name!r}: {one_line(error)}") from error
