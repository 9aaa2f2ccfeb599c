"""Runs of MLflow: metrics by training step, tables, and the files with the results."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.api import Session
from traincheck_check.reporting.exporters.library import imported, one_line
from traincheck_check.reporting.exporters.metrics import metrics_of
from traincheck_check.reporting.exporters.runs import run_name
from traincheck_check.reporting.exporters.tables import files_of, tables_of
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.results_file import REPORT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traincheck_check.reporting.api import Report
    from traincheck_check.reporting.exporters.series import Advance

_EXTRA = "mlflow"
_DEFAULT_EXPERIMENT = "0"
_MOST_METRICS = 1000  # in a request
_TABLES_TAG = "mlflow.loggedArtifacts"  # what of the artifacts MLflow shows as tables
_SETTINGS = {
    # 7 by default, with pauses that double: a check would wait for minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    # It would stand between the documents that --format json prints.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


@attrs.frozen(kw_only=True)
class Mlflow:
    """MLflow and what is asked of it."""

    _client: Any
    _metric: Any  # the class
    session: Session
    experiment: str | None
    run_name: str | None

    @classmethod
    def ready(cls, **choices: Any) -> Mlflow:
        """Import MLflow; a server is not asked for yet.

        Raises:
            ConfigError: It is not installed, or can't be used with its settings.
        """
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        client = imported("mlflow.tracking", extra=_EXTRA).MlflowClient
        metric = imported("mlflow.entities", extra=_EXTRA).Metric
        try:
            return cls(client=client(), metric=metric, **choices)
        except Exception as error:
            raise ConfigError(
                f"MLflow can't be used: {one_line(error).rstrip('.')}; MLFLOW_TRACKING_URI says "
                "where it keeps runs (a database takes all of mlflow, not mlflow-skinny alone)"
            ) from error

    def begin(self, report: Report) -> MlflowRun:
        """Begin a run."""
        session = self.session
        run = self._client.create_run(
            self._experiment_id(),
            run_name=run_name(self.run_name, report),
            tags={
                "traincheck.mode": session.mode,
                "traincheck.invariants_total": str(len(session.invariants)),
                "traincheck.output_dir": str(report.folder),
            },
        )
        return MlflowRun(self._client, self._metric, run.info.run_id)

    def _experiment_id(self) -> str:
        if self.experiment is None:
            return os.environ.get("MLFLOW_EXPERIMENT_ID") or _DEFAULT_EXPERIMENT
        found = self._client.get_experiment_by_name(self.experiment)
        known: str = found.experiment_id if found else ""
        return known or str(self._client.create_experiment(self.experiment))


@attrs.frozen
class MlflowRun:
    """One run of MLflow."""

    _client: Any
    _metric: Any
    _id: str

    def tell(self, report: Report, advance: Advance) -> None:
        """Log what is new."""
        now = time.time_ns() // 1_000_000
        series = (
            self._metric(name, value, now, point.step)
            for point in advance.points
            for name, value in (
                ("traincheck_violations", point.violations),
                ("traincheck_violations_so_far", point.so_far),
            )
        )
        figures = (
            self._metric(name.replace("/", "_"), value, now, advance.step)
            for name, value in metrics_of(report.outcome.summary).items()
        )
        for metrics in _batches([*series, *figures]):
            self._client.log_batch(self._id, metrics=metrics)

    def end(self, report: Report) -> None:
        """Log tables and files, and end the run."""
        tables = [each for each in tables_of(report.outcome) if each.rows]
        for each in tables:
            document = {"columns": each.columns, "data": each.rows}
            self._client.log_dict(self._id, document, f"{each.name}.json")
        shown = [{"path": f"{each.name}.json", "type": "table"} for each in tables]
        self._client.set_tag(self._id, _TABLES_TAG, json.dumps(shown))
        for path in files_of(report.folder):
            folder = None if path.name == REPORT_NAME else "violations_summaries"
            self._client.log_artifact(self._id, str(path), folder)
        is_over = not report.outcome.summary.running
        self._client.set_terminated(self._id, "FINISHED" if is_over else "KILLED")


def _batches(metrics: Sequence[Any]) -> Iterable[Sequence[Any]]:
    for start in range(0, len(metrics), _MOST_METRICS):
        yield metrics[start : start + _MOST_METRICS]
