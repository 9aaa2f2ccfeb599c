"""The command `traincheck run`: the whole job, learning included if need be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traincheck_launcher.commands.options import GROUPS, collect_options
from traincheck_launcher.configuration.command import ConfigurableCommand
from traincheck_launcher.configuration.given import Given
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What collecting has and this has not: it names the program, always checks, and runs it.
_LEFT_OUT = frozenset(("pyscript", "checks", "explains", "verbose", "overwrite", "only_instr"))
_GROUPS = {
    "What to check it against": ("invariants", "reference", "reference_arguments"),
    **GROUPS,
}


class _RunCommand(ConfigurableCommand):
    """A command with the options of collecting, which leaves what follows `--` to the program."""

    def __init__(self, *args: Any, params: Iterable[click.Parameter] = (), **attrs: Any) -> None:
        kept = [param for param in params if param.name not in _LEFT_OUT]
        super().__init__(*args, params=kept, **attrs)

    def other_keys(self) -> Mapping[str, click.Parameter]:
        """Return SCRIPT, which a config file gives as it does to `traincheck-collect`."""
        return {"pyscript": next(param for param in self.params if param.name == "script")}


@click.command(
    cls=_RunCommand,
    groups=_GROUPS,
    no_args_is_help=True,
    options_metavar="SCRIPT [OPTIONS] [-- ARGUMENTS...]",
)
@click.argument("script", required=False, metavar="", type=click.Path(path_type=Path))
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A program that does it right; what always holds in a run of it is learnt first.",
)
@click.option(
    "--reference-args",
    "reference_arguments",
    metavar="TEXT",
    help="The arguments of the reference, as in a shell.  [default: those of the program]",
)
@collect_options
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    script: Path | None,
    reference: Path | None,
    reference_arguments: str | None,
    **values: Any,
) -> int:
    """Train, and check it while it goes on; if need be, learn first what is right.

    SCRIPT comes first, what stands after -- are its arguments. Everything that is written goes into
    one folder. The exit code is that of SCRIPT; if that is 0, 1 if something is broken.

    \b
    Examples:
      traincheck run train.py --models-to-track model -i invariants.json
      traincheck run train.py --models-to-track model --reference good.py -- --epochs 3
      traincheck run train.py --models-to-track model -i invariants.json \\
          --on-violation stop --nproc-per-node 2 --standalone
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    # Imported here so that --help answers at once.
    from traincheck_launcher.live.whole_job import Reference, run_whole_job  # noqa: PLC0415
    from traincheck_launcher.options import CollectOptions  # noqa: PLC0415

    if script is None and values["module"] is None:
        raise ConfigError("the program is missing: traincheck run train.py")
    given = Given.of(ctx)
    asked = {**values, "pyscript": script, "checks": True, "overwrite": False}
    options = CollectOptions.of(asked, arguments=given.arguments, configured=given.from_file)
    learnt_from = Reference.of(reference, reference_arguments, given.arguments)
    return run_whole_job(options, learnt_from, tuple(sys.argv))
