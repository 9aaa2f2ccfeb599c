"""The command `traincheck-collect`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from traincheck_launcher.size import trace_size
from traincheck_trace_schema.cli import ManyValues, TraincheckCommand

_PATH = click.Path(path_type=Path)
_ARGUMENTS = f"{__name__}.arguments"  # of the program, in the context's meta data


class _CollectCommand(TraincheckCommand):
    """A command that leaves what stands after `--` to the program that it runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before `--`; a stray word there is an error."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_ARGUMENTS] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


@click.command(
    cls=_CollectCommand, no_args_is_help=True, options_metavar="[OPTIONS] [-- ARGUMENTS...]"
)
@click.option(
    "-p", "--pyscript", type=_PATH, required=True, help="The training program: a Python script."
)
@click.option(
    "-s",
    "--shscript",
    type=_PATH,
    help="The shell script that starts it, with torchrun or in any other way; it runs unchanged.",
)
@click.option(
    "--models-to-track",
    "models",
    cls=ManyValues,
    metavar="NAME",
    help="Variables of the script that hold a model; their parameters are recorded.",
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
    "-i",
    "--invariants",
    cls=ManyValues,
    type=_PATH,
    metavar="FILE",
    help="Record only what checking these invariants needs.",
)
@click.option(
    "--sampling-interval",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="After the warm-up, record every n-th step.",
)
@click.option(
    "--warm-up-steps",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Record so many first steps in any case.",
)
@click.option(
    "--model-tracker-style",
    type=click.Choice(["subclass"]),
    default="subclass",
    show_default=True,
    help="How models are tracked. So far there is one way: parameters become instances of a "
    "subclass of torch.nn.Parameter.",
)
@click.option(
    "--tensor-dump-format",
    type=click.Choice(["hash"]),
    default="hash",
    show_default=True,
    help="What is kept of a tensor. So far: a digest of its content.",
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
@click.option(
    "--explain",
    "explains",
    is_flag=True,
    help="Run nothing; show the loops found and the names that would be tracked.",
)
@click.pass_context
def collect(  # noqa: PLR0913  one for each option
    ctx: click.Context,
    *,
    pyscript: Path,
    shscript: Path | None,
    models: tuple[str, ...],
    output_dir: Path | None,
    overwrite: bool,
    invariants: tuple[Path, ...],
    sampling_interval: int,
    warm_up_steps: int,
    model_tracker_style: Literal["subclass"],
    tensor_dump_format: Literal["hash"],
    max_trace_size: int | None,
    gzip: bool,
    explains: bool,
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
    from traincheck_trace_schema.records import Sampling  # noqa: PLC0415

    options = collecting.CollectOptions(
        pyscript=pyscript,
        shscript=shscript,
        arguments=ctx.meta[_ARGUMENTS],
        models=tuple(dict.fromkeys(models)),
        output_dir=output_dir,
        overwrite=overwrite,
        invariants=invariants,
        sampling=Sampling(interval=sampling_interval, warm_up=warm_up_steps),
        tracker=model_tracker_style,
        tensor_format=tensor_dump_format,
        max_trace_bytes=max_trace_size,
        gzip=gzip,
    )
    if explains:
        return collecting.explain_only(options)
    return collecting.collect(options, tuple(sys.argv))


def main() -> None:
    """Run `traincheck-collect`."""
    collect(prog_name="traincheck-collect")


if __name__ == "__main__":
    main()
