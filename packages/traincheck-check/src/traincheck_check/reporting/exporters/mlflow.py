"""`--report-mlflow`: results in MLflow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_check.reporting.api import Session, Sink


class MlflowReporter:
    """Offers `--report-mlflow` and the options that go with it."""

    name = "mlflow"

    def options(self) -> Sequence[click.Option]:
        """Return the options."""
        return [
            click.Option(["--report-mlflow"], is_flag=True, help="Write the results to MLflow."),
            click.Option(
                ["--mlflow-experiment"],
                metavar="NAME",
                help="Experiment of the MLflow run, made if need be.",
            ),
            click.Option(
                ["--mlflow-run-name"],
                metavar="NAME",
                help="Name of the MLflow run; of several, each adds its own.",
            ),
        ]

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin if asked for.

        Raises:
            ConfigError: MLflow is not installed, or can't be used with its settings.
        """
        from traincheck_check.reporting.exporters.library import is_asked_for  # noqa: PLC0415

        if not is_asked_for(values, "report_mlflow"):
            return None
        from traincheck_check.reporting.exporters.background import (  # noqa: PLC0415  see --help
            beside_the_check,
        )
        from traincheck_check.reporting.exporters.mlflow_run import Mlflow  # noqa: PLC0415
        from traincheck_check.reporting.exporters.runs import RunSink  # noqa: PLC0415

        library = Mlflow.ready(
            session=session,
            experiment=values["mlflow_experiment"] or os.environ.get("MLFLOW_EXPERIMENT_NAME"),
            run_name=values["mlflow_run_name"],
        )
        return beside_the_check(RunSink(library.begin), session)
