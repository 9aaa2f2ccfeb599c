"""`--junit FILE`: results as a file of tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_check.reporting.api import Session, Sink


class JunitReporter:
    """Offers `--junit`."""

    name = "junit"

    def options(self) -> Sequence[click.Option]:
        """Return the option."""
        return [
            click.Option(
                ["--junit"],
                type=click.Path(dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Write the results as JUnit XML, a test case for each invariant.",
            )
        ]

    def start(self, values: Mapping[str, Any], session: Session) -> Sink | None:
        """Begin if there is a file.

        Raises:
            ConfigError: The file can't be written.
        """
        path: Path | None = values.get("junit")
        if path is None:
            return None
        from traincheck_check.judging.exit_code import Threshold  # noqa: PLC0415  --help needs none
        from traincheck_check.reporting.exporters.junit_file import JunitFile  # noqa: PLC0415

        del session
        limits = Threshold(fail_on=values["fail_on"], min_coverage=values["min_coverage"])
        file = JunitFile(path, limits)
        file.write()  # empty, so that a place that can't be written to is told now
        return file
