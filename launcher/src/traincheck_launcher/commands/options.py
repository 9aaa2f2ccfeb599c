"""The options of collecting, by the groups of their help; more than one command has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from traincheck_launcher.commands.percent import percentage
from traincheck_launcher.commands.size import trace_size
from traincheck_launcher.commands.torchrun import TORCHRUN_GROUP, torchrun_options
from traincheck_launcher.configuration.option import CONFIG_GROUP, config_options
from traincheck_launcher.configuration.switch import Switch
from traincheck_launcher.configuration.without_effect import WithoutEffect
from traincheck_trace_schema.cli import ManyValues, set_debug

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PATH = click.Path(path_type=Path)
GROUPS = {
    "What to run": ("pyscript", "module", "shscript", "explains", "verbose", "only_instr"),
    **CONFIG_GROUP,
    "What to record": (
        *("models", "tracker", "tracks_by_hand", "invariants", "modules"),
        *("with_private", "with_descriptors", "with_stacks", "follows_subprocesses"),
        "tensor_format",
    ),
    "How often": ("sampling_interval", "warm_up_steps", "overhead_budget"),
    "Checking while it runs": ("checks", "baseline", "on_violation", "lockstep"),
    "Where to": ("output_dir", "overwrite", "copies_files", "max_trace_bytes", "gzip"),
    **TORCHRUN_GROUP,
    "Taken from TrainCheck 0.x": ("scans_no_arguments", "compiles", "profiles"),
}

_WHAT_TO_RUN = (
    click.option(
        "-p",
        "--pyscript",
        type=_PATH,
        metavar="FILE",
        help="The training program: a Python script.",
    ),
    click.option(
        "-m",
        "--module",
        metavar="MODULE",
        help="The training program: a module, run as python -m does.",
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
        cls=Switch,
        help="Run nothing; show the loops found, and what would be recorded.",
    ),
    click.option(
        "-v", "--verbose", cls=Switch, help="With --explain: name every function and module."
    ),
    click.option(
        "--only-instr",
        cls=Switch,
        help="Run nothing; write all that is needed to run it, and say how.",
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
        "--no-auto-var-instr",
        "tracks_by_hand",
        cls=Switch,
        help="Look for no models in the program: it calls traincheck_instrument.track(model).",
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
        "--use-full-instr", "with_private", cls=Switch, help="Record calls that are private, too."
    ),
    click.option(
        "--instr-descriptors",
        "with_descriptors",
        cls=Switch,
        help="Record builtins and descriptors, such as methods of tensors, too.",
    ),
    click.option(
        "--API-dump-stack-trace",
        "with_stacks",
        cls=Switch,
        help="Record with each call all lines of your code that led to it.",
    ),
    click.option(
        "--follow-subprocesses",
        "follows_subprocesses",
        cls=Switch,
        help="Record the Python programs that the program starts, too.",
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
_CHECKING = (
    click.option(
        "--check",
        "checks",
        cls=Switch,
        help="Check the run against the --invariants while it goes on; what is broken is told at "
        "once.",
    ),
    click.option(
        "--baseline",
        type=_PATH,
        metavar="FILE",
        help="With --check: a suppression file; what it matches is known to be broken, is told as "
        "such, and stops nothing.",
    ),
    click.option(
        "--on-violation",
        type=click.Choice(["warn", "stop"]),
        metavar="WHAT",
        default="warn",
        show_default=True,
        help="With --check: warn, or stop all ranks before their next step, with exit code 1.",
    ),
    click.option(
        "--lockstep",
        cls=Switch,
        help="With --on-violation stop: each step, and each checkpoint, waits for the verdict on "
        "what came before.",
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
        cls=Switch,
        help="Use an output folder that is not empty; the traces and logs of an earlier run in it "
        "are deleted.",
    ),
    click.option(
        "-a",
        "--copy-all-files",
        "copies_files",
        cls=Switch,
        help="Copy the files beside the training script, and below, into the output folder, except "
        "large ones.",
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
        cls=Switch,
        help="Compress the traces, to a tenth of their size.",
    ),
)
_DEBUG = click.option(
    "-d",
    "--debug-mode",
    "debug",
    cls=Switch,
    expose_value=False,
    is_eager=True,
    callback=set_debug,
    help="Show the traceback where TrainCheck has a fault, also inside the program.",
)
_WITHOUT_EFFECT = (
    click.option(
        "--disable-scan-proxy-in-args",
        "scans_no_arguments",
        cls=WithoutEffect,
        reason="has no effect: arguments are never searched for proxies",
        help="Has no effect: arguments are never searched for proxies.",
    ),
    click.option(
        "--use-torch-compile",
        "compiles",
        cls=WithoutEffect,
        reason="is not needed: a program that uses torch.compile runs as it would by itself",
        help="Not needed: torch.compile works as it would by itself.",
    ),
    click.option(
        "--profiling",
        "profiles",
        cls=WithoutEffect,
        refused=True,
        reason="nothing is profiled; put a profiler around the command: py-spy record "
        "--subprocesses -o profile.svg -- traincheck-collect -p train.py",
        help="Refused: put a profiler around the command, such as py-spy record --subprocesses.",
    ),
)


def collect_options(function: _Function) -> _Function:
    """Add all options of collecting; the names of their values are those of `CollectOptions.of`."""
    function = torchrun_options(function)
    recording = (*_WHAT_TO_RECORD, *_HOW_OFTEN, *_CHECKING, *_WHERE_TO)
    for option in reversed((*_WHAT_TO_RUN, *recording, _DEBUG, *_WITHOUT_EFFECT)):
        function = option(function)
    # Above all others: their values may come from the file.
    return config_options(function)
