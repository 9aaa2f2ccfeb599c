"""`--report-tensorboard DIR`: results beside the curves of the training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_check.reporting.api import Session, Sink


class TensorboardReporter:
    """Offers `--report-tensorboard`."""

    name = "tensorboard"

    def options(self) -> Sequence[click.Option]:
        """Return the option."""
        return [
            click.Option(
                ["--report-tensorboard"],
                type=click.Path(file_okay=False, path_type=Path),
                metavar="DIR",
                help="Write the results for TensorBoard; DIR may be the training's own.",
            )
        ]

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin if there is a folder.

        Raises:
            ConfigError: TensorBoard is not installed, or the folder can't be made.
        """
        folder: Path | None = values.get("report_tensorboard")
        if folder is None:
            return None
        from traincheck_check.judging.output_folder import make_folder  # noqa: PLC0415  see --help
        from traincheck_check.reporting.exporters.runs import RunSink  # noqa: PLC0415
        from traincheck_check.reporting.exporters.tensorboard_events import (  # noqa: PLC0415
            EventLibrary,
            Events,
        )

        del session
        library = EventLibrary.imported()
        make_folder(folder)
        return RunSink(lambda report: Events.begun(library, folder / report.name))
