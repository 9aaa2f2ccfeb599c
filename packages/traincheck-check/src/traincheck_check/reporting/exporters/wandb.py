"""`--report-wandb`: results in Weights & Biases."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from traincheck_trace_schema.cli import ManyValues

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_check.reporting.api import Session, Sink

_TEXTS = {
    "--wandb-project": "Project of the W&B run.",
    "--wandb-entity": "Team or user that the W&B run belongs to.",
    "--wandb-run-name": "Name of the W&B run; of several, each adds its own.",
    "--wandb-group": "Group of the W&B runs.  [default: of several, the results folder's name]",
    "--wandb-run-id": "Write to this W&B run, that of the training say, and not to a new one.",
}


class WandbReporter:
    """Offers `--report-wandb` and the options that go with it."""

    name = "wandb"

    def options(self) -> Sequence[click.Option]:
        """Return the options."""
        return [
            click.Option(
                ["--report-wandb"], is_flag=True, help="Write the results to Weights & Biases."
            ),
            *(
                click.Option([name], metavar=name.rpartition("-")[2].upper(), help=text)
                for name, text in _TEXTS.items()
            ),
            ManyValues(["--wandb-tags"], metavar="TAG", help="Tags of the W&B run."),
        ]

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin if asked for.

        Raises:
            ConfigError: W&B is not installed, or nobody is logged in.
        """
        from traincheck_check.reporting.exporters.library import is_asked_for  # noqa: PLC0415

        if not is_asked_for(values, "report_wandb"):
            return None
        from traincheck_check.reporting.exporters.background import (  # noqa: PLC0415  see --help
            beside_the_check,
        )
        from traincheck_check.reporting.exporters.runs import RunSink  # noqa: PLC0415
        from traincheck_check.reporting.exporters.wandb_run import Wandb  # noqa: PLC0415

        library = Wandb.ready(
            session=session,
            project=values["wandb_project"],
            entity=values["wandb_entity"],
            run_name=values["wandb_run_name"],
            group=values["wandb_group"],
            tags=tuple(values["wandb_tags"]),
            run_id=values["wandb_run_id"] or os.environ.get("WANDB_RUN_ID"),
        )
        return beside_the_check(RunSink(library.begin), session)
