"""The command `traincheck-collect`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_launcher.percent import percentage
from traincheck_launcher.size import trace_size
from traincheck_trace_schema.cli import ManyValues
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.option_groups import GroupedCommand

if TYPE_CHECKING:
    from traincheck_instrument.settings import TensorFormat, Tracker

_PATH = click.Path(path_type=Path)
_ARGUMENTS = f"{__name__}.arguments"  # of the program, in the context's meta data
_GROUPS = {
    "What to run": ("pyscript", "shscript", "explains", "verbose"),
    "What to record": (
        *("models", "tracker", "invariants", "modules"),
        *("with_private", "with_descriptors", "with_stacks", "tensor_format"),
    ),
    "How often": ("sampling_interval", "warm_up_steps", "overhead_budget"),
    "Where to": ("output_dir", "overwrite", "max_trace_size", "gzip"),
}


class _CollectCommand(GroupedCommand):
    """A command that leaves what stands after `--` to the program that it runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before `--`; a stray word there is an error."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_ARGUMENTS] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


@click.command(
    cls=_CollectCommand,
    groups=_GROUPS,
    no_args_is_help=True,
    options_metavar="[OPTIONS] [-- ARGUMENTS...]",
)
@click.option(
    "-p",
    "--pyscript",
    type=_PATH,
    metavar="FILE",
    required=True,
    help="The training program: a Python script.",
)
@click.option(
    "-s",
    "--shscript",
    type=_PATH,
    metavar="FILE",
    help="The shell script that starts it, with torchrun or in any other way; it runs unchanged.",
)
@click.option(
    "--explain",
    "explains",
    is_flag=True,
    help="Run nothing; show the loops found, and what would be recorded.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="With --explain: name every function and module."
)
@click.option(
    "--models-to-track",
    "models",
    cls=ManyValues,
    metavar="NAME",
    help="Variables of the script that hold a model; what it is made of is recorded.",
)
@click.option(
    "--model-tracker-style",
    "tracker",
    type=click.Choice(["subclass", "proxy", "sampler"]),
    metavar="STYLE",
    help="How models are followed: subclass (parameters tell of changes), proxy (the model is "
    "wrapped), sampler (looks after optimizer steps).  [default: what the invariants need; "
    "without any, subclass]",
)
@click.option(
    "-i",
    "--invariants",
    cls=ManyValues,
    type=_PATH,
    metavar="FILE",
    help="Record only what checking these invariants needs.",
)
@click.option(
    "-t",
    "--modules-to-instr",
    "modules",
    cls=ManyValues,
    metavar="MODULE",
    help="Modules whose calls are recorded, with those below them; your own, too.  "
    "[default: torch, and what the invariants speak of]",
)
@click.option(
    "--use-full-instr", "with_private", is_flag=True, help="Record calls that are private, too."
)
@click.option(
    "--instr-descriptors",
    "with_descriptors",
    is_flag=True,
    help="Record builtins and descriptors, such as methods of tensors, too.",
)
@click.option(
    "--API-dump-stack-trace",
    "with_stacks",
    is_flag=True,
    help="Record with each call all lines of your code that led to it.",
)
@click.option(
    "--tensor-dump-format",
    "tensor_format",
    type=click.Choice(["hash", "stats", "full"]),
    metavar="FORMAT",
    default="hash",
    show_default=True,
    help="What is kept of the content of parameters: hash (a digest), stats (its statistics), "
    "full (all of it).",
)
@click.option(
    "--sampling-interval",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="After the warm-up, record every n-th step.",
)
@click.option(
    "--warm-up-steps",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Record so many first steps in any case.",
)
@click.option(
    "--overhead-budget",
    callback=percentage,
    metavar="PERCENT",
    help="Record fewer steps where recording takes more than this share of their time.  "
    "[default: no limit]",
)
@click.option(
    "--output-dir",
    type=_PATH,
    metavar="DIR",
    help="Where traces and logs go.  [default: traincheck_run_<script>_<time>]",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Delete the traces and logs of an earlier run in the output folder.",
)
@click.option(
    "--max-trace-size",
    callback=trace_size,
    metavar="SIZE",
    help="Stop recording when the traces of all processes together have reached this size, such "
    "as 500MB or 2GiB. The program goes on.  [default: no limit]",
)
@click.option(
    "--gzip",
    is_flag=True,
    help="Compress the traces, to a tenth of their size.",
)
@click.pass_context
def collect(  # noqa: PLR0913  one for each option
    ctx: click.Context,
    *,
    pyscript: Path,
    shscript: Path | None,
    explains: bool,
    verbose: bool,
    models: tuple[str, ...],
    tracker: Tracker | None,
    invariants: tuple[Path, ...],
    modules: tuple[str, ...],
    with_private: bool,
    with_descriptors: bool,
    with_stacks: bool,
    tensor_format: TensorFormat,
    sampling_interval: int,
    warm_up_steps: int,
    overhead_budget: float | None,
    output_dir: Path | None,
    overwrite: bool,
    max_trace_size: int | None,
    gzip: bool,
) -> int:
    """Run a training program and record what it does.

    The program runs as it would by itself; what stands after -- are its arguments. The exit code
    is the program's own.

    \b
    Examples:
      traincheck-collect -p train.py --models-to-track model -- --epochs 3
      traincheck-collect -p train.py -s run.sh --models-to-track model
      traincheck-collect -p train.py --models-to-track model -i invariants.json
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    # Imported here so that --help answers at once.
    from traincheck_launcher import collect as collecting  # noqa: PLC0415
    from traincheck_launcher.options import CollectOptions  # noqa: PLC0415
    from traincheck_trace_schema.records import Sampling  # noqa: PLC0415

    options = CollectOptions(
        pyscript=pyscript,
        shscript=shscript,
        arguments=ctx.meta[_ARGUMENTS],
        output_dir=output_dir,
        overwrite=overwrite,
        invariants=invariants,
        models=tuple(dict.fromkeys(models)),
        tracker=tracker,
        modules=modules,
        with_private=with_private,
        with_descriptors=with_descriptors,
        with_stacks=with_stacks,
        tensor_format=tensor_format,
        sampling=Sampling(
            interval=sampling_interval, warm_up=warm_up_steps, budget=overhead_budget
        ),
        max_trace_bytes=max_trace_size,
        gzip=gzip,
    )
    if verbose and not explains:
        raise ConfigError("--verbose: says more of what --explain shows; give both, or neither")
    if explains:
        return collecting.explain_only(options, is_verbose=verbose)
    return collecting.collect(options, tuple(sys.argv))


def main() -> None:
    """Run `traincheck-collect`."""
    collect(prog_name="traincheck-collect")


if __name__ == "__main__":
    main()
