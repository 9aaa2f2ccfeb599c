"""`--report-otel`: results as metrics and events of OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_check.reporting.api import Session, Sink


class OtelReporter:
    """Offers `--report-otel`."""

    name = "otel"

    def options(self) -> Sequence[click.Option]:
        """Return the option."""
        return [
            click.Option(
                ["--report-otel"],
                is_flag=True,
                help="Send the results as OpenTelemetry metrics and events, to where "
                "OTEL_EXPORTER_OTLP_ENDPOINT says.",
            )
        ]

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin if asked for.

        Raises:
            ConfigError: OpenTelemetry is not installed, or its environment variables are wrong.
        """
        if not values.get("report_otel"):
            return None
        from traincheck_check.reporting.exporters.otel_pipeline import Pipeline  # noqa: PLC0415
        from traincheck_check.reporting.exporters.otel_signals import Signals  # noqa: PLC0415

        return Signals(Pipeline.of_environment(), session.mode)
