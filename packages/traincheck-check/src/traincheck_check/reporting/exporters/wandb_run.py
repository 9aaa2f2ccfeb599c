"""Runs of Weights & Biases: metrics by training step, tables, and the files with the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.api import Session
from traincheck_check.reporting.exporters.library import imported, one_line
from traincheck_check.reporting.exporters.metrics import GROUPS, metrics_of
from traincheck_check.reporting.exporters.runs import run_name
from traincheck_check.reporting.exporters.tables import files_of, tables_of
from traincheck_trace_schema.cli import note
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.results_file import REPORT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from traincheck_check.reporting.api import Report
    from traincheck_check.reporting.exporters.series import Advance

_STEP = "traincheck/step"  # the training's; W&B's own step may be further, in a run of a training
_SAY_NOTHING = {  # of this process: the run may be that of a training
    "disable_git": True,
    "save_code": False,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
}
_SENDING = ("online", "run", "shared")  # modes that need an account


@attrs.frozen(kw_only=True)
class Wandb:
    """W&B and what is asked of it."""

    _library: Any
    session: Session
    project: str | None
    entity: str | None
    run_name: str | None
    group: str | None
    tags: tuple[str, ...]
    run_id: str | None

    @classmethod
    def ready(cls, **choices: Any) -> Wandb:
        """Import W&B, and see to it that somebody is logged in.

        Raises:
            ConfigError: It is not installed, or nobody is.
        """
        library = imported("wandb", extra="wandb")
        try:
            _log_in(library)
        except Exception as error:
            raise ConfigError(
                f"W&B can't be used: {one_line(error).rstrip('.')}; or set WANDB_API_KEY, or keep "
                "the runs here with WANDB_MODE=offline"
            ) from error
        return cls(library=library, **choices)

    def begin(self, report: Report) -> WandbRun:
        """Begin a run, or go on with that of the id."""
        session = self.session
        library = self._library
        run = library.init(
            project=self.project,
            entity=self.entity,
            name=self.run_name if self.run_id else run_name(self.run_name, report),
            group=self.group or (session.output_dir.name if report.name else None),
            tags=self.tags or None,
            id=self.run_id,
            resume="allow" if self.run_id else None,
            job_type=None if self.run_id else "checker",
            reinit="create_new",
            config={
                "traincheck/invariants_total": len(session.invariants),
                "traincheck/output_dir": str(report.folder),
                "traincheck/mode": session.mode,
            },
            settings=library.Settings(console="off", silent=True, **_SAY_NOTHING),
        )
        # In a run that several write to, each has a part of its own.
        prefix = f"{report.name}/" if self.run_id and report.name else ""
        return WandbRun.begun(library, run, prefix)


@attrs.frozen
class WandbRun:
    """One run of W&B."""

    _library: Any
    _run: Any
    _prefix: str

    @classmethod
    def begun(cls, library: Any, run: Any, prefix: str) -> WandbRun:
        """Say of which steps the metrics are."""
        run.define_metric(f"{prefix}{_STEP}", hidden=True)
        for group in ("traincheck", *GROUPS):
            run.define_metric(f"{prefix}{group}/*", step_metric=f"{prefix}{_STEP}")
        return cls(library, run, prefix)

    def tell(self, report: Report, advance: Advance) -> None:
        """Log what is new."""
        for point in advance.points:
            self._log(
                {
                    _STEP: point.step,
                    "traincheck/violations": point.violations,
                    "traincheck/violations_so_far": point.so_far,
                }
            )
        self._log({_STEP: advance.step, **metrics_of(report.outcome.summary)})

    def end(self, report: Report) -> None:
        """Log tables and files, and end the run."""
        table = self._library.Table
        tables: dict[str, Any] = {
            each.name: table(columns=[*each.columns], data=[[*row] for row in each.rows])
            for each in tables_of(report.outcome)
        }
        files = [*files_of(report.folder)]
        for path in files:
            if path.name == REPORT_NAME:
                tables["checker_report"] = self._library.Html(str(path))
        self._log(tables)
        name = f"{self._prefix}violations_summary".replace("/", "-")
        artifact = self._library.Artifact(name, type="checker_output")
        for path in files:
            artifact.add_file(str(path))
        self._run.log_artifact(artifact)
        # Where a run lies has to be known to be synchronised.
        place = self._run.settings.sync_dir if self._run.offline else self._run.url
        self._run.finish()
        note(f"W&B: {place}")

    def _log(self, values: Mapping[str, Any]) -> None:
        self._run.log({f"{self._prefix}{name}": value for name, value in values.items()})


def _log_in(library: ModuleType) -> None:
    if library.setup().settings.mode in _SENDING:
        library.login(verify=False)
