"""The options of collecting, by the groups of their help; more than one command has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from traincheck_launcher.commands.percent import percentage
from traincheck_launcher.commands.size import trace_size
from traincheck_trace_schema.cli import ManyValues

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PATH = click.Path(path_type=Path)
GROUPS = {
    "What to run": ("pyscript", "shscript", "explains", "verbose"),
    "What to record": (
        *("models", "tracker", "invariants", "modules"),
        *("with_private", "with_descriptors", "with_stacks", "tensor_format"),
    ),
    "How often": ("sampling_interval", "warm_up_steps", "overhead_budget"),
    "Where to": ("output_dir", "overwrite", "max_trace_bytes", "gzip"),
}

_WHAT_TO_RUN = (
    click.option(
        "-p",
        "--pyscript",
        type=_PATH,
        metavar="FILE",
        required=True,
        help="The training program: a Python script.",
    ),
    click.option(
        "-s",
        "--shscript",
        type=_PATH,
        metavar="FILE",
        help="The shell script that starts it, with torchrun or in any other way; it runs "
        "unchanged.",
    ),
    click.option(
        "--explain",
        "explains",
        is_flag=True,
        help="Run nothing; show the loops found, and what would be recorded.",
    ),
    click.option(
        "-v", "--verbose", is_flag=True, help="With --explain: name every function and module."
    ),
)
_WHAT_TO_RECORD = (
    click.option(
        "--models-to-track",
        "models",
        cls=ManyValues,
        metavar="NAME",
        help="Variables of the script that hold a model; what it is made of is recorded.",
    ),
    click.option(
        "--model-tracker-style",
        "tracker",
        type=click.Choice(["subclass", "proxy", "sampler"]),
        metavar="STYLE",
        help="How models are followed: subclass (parameters tell of changes), proxy (the model is "
        "wrapped), sampler (looks after optimizer steps).  [default: what the invariants need; "
        "without any, subclass]",
    ),
    click.option(
        "-i",
        "--invariants",
        cls=ManyValues,
        type=_PATH,
        metavar="FILE",
        help="Record only what checking these invariants needs.",
    ),
    click.option(
        "-t",
        "--modules-to-instr",
        "modules",
        cls=ManyValues,
        metavar="MODULE",
        help="Modules whose calls are recorded, with those below them; your own, too.  "
        "[default: torch, and what the invariants speak of]",
    ),
    click.option(
        "--use-full-instr", "with_private", is_flag=True, help="Record calls that are private, too."
    ),
    click.option(
        "--instr-descriptors",
        "with_descriptors",
        is_flag=True,
        help="Record builtins and descriptors, such as methods of tensors, too.",
    ),
    click.option(
        "--API-dump-stack-trace",
        "with_stacks",
        is_flag=True,
        help="Record with each call all lines of your code that led to it.",
    ),
    click.option(
        "--tensor-dump-format",
        "tensor_format",
        type=click.Choice(["hash", "stats", "full"]),
        metavar="FORMAT",
        default="hash",
        show_default=True,
        help="What is kept of the content of parameters: hash (a digest), stats (its statistics), "
        "full (all of it).",
    ),
)
_HOW_OFTEN = (
    click.option(
        "--sampling-interval",
        type=click.IntRange(min=1),
        metavar="N",
        default=1,
        show_default=True,
        help="After the warm-up, record every n-th step.",
    ),
    click.option(
        "--warm-up-steps",
        type=click.IntRange(min=0),
        metavar="N",
        default=0,
        show_default=True,
        help="Record so many first steps in any case.",
    ),
    click.option(
        "--overhead-budget",
        callback=percentage,
        metavar="PERCENT",
        help="Record fewer steps where recording takes more than this share of their time.  "
        "[default: no limit]",
    ),
)
_WHERE_TO = (
    click.option(
        "--output-dir",
        type=_PATH,
        metavar="DIR",
        help="Where traces and logs go.  [default: traincheck_run_<script>_<time>]",
    ),
    click.option(
        "--overwrite",
        is_flag=True,
        help="Delete the traces and logs of an earlier run in the output folder.",
    ),
    click.option(
        "--max-trace-size",
        "max_trace_bytes",
        callback=trace_size,
        metavar="SIZE",
        help="Stop recording when the traces of all processes together have reached this size, "
        "such as 500MB or 2GiB. The program goes on.  [default: no limit]",
    ),
    click.option(
        "--gzip",
        is_flag=True,
        help="Compress the traces, to a tenth of their size.",
    ),
)


def collect_options(function: _Function) -> _Function:
    """Add all options of collecting; the names of their values are those of `CollectOptions.of`."""
    for option in reversed((*_WHAT_TO_RUN, *_WHAT_TO_RECORD, *_HOW_OFTEN, *_WHERE_TO)):
        function = option(function)
    return function
