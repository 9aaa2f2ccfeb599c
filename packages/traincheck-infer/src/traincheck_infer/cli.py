"""The command `traincheck-infer`. What it does stands in `inference`, imported when it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import (
    ManyValues,
    TraincheckCommand,
    debug_option,
    given_traces,
    note,
    trace_options,
    warn,
)
from traincheck_trace_schema.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from traincheck_infer.outcome import Inference
    from traincheck_relations.api import Relation


def _inert_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that earlier versions had, and that there is nothing left for to do."""
    backend = click.option(
        "-b",
        "--backend",
        type=click.Choice(["pandas", "polars", "dict"]),
        help="Does nothing: traces are streamed. Accepted as of TrainCheck 0.x.",
    )
    disable = click.option(
        "--disable-precond-sampling",
        is_flag=True,
        help="Does nothing: preconditions are always found from all examples.",
    )
    threshold = click.option(
        "--precond-sampling-threshold",
        type=click.IntRange(min=1),
        help="Does nothing: preconditions are always found from all examples.",
    )
    return backend(disable(threshold(function)))


@click.command("infer", cls=TraincheckCommand)
@trace_options
@debug_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("invariants.json"),
    show_default=True,
    help="The invariant file to write; other invariants that stand there are kept as FILE.bak.",
)
@click.option("--enable-relation", cls=ManyValues, metavar="NAME", help="Use only these relations.")
@click.option("--disable-relation", cls=ManyValues, metavar="NAME", help="Leave relations out.")
@click.option(
    "--min-runs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Leave out what applied in fewer runs.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many processes read the traces; the result is the same.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Read the traces on the workers of this Dask cluster; needs traincheck-infer[dask].",
)
@_inert_options
def infer(  # noqa: PLR0913  one for each option
    trace_folders: tuple[Path, ...],
    traces: tuple[Path, ...],
    *,
    strict: bool,
    output: Path,
    enable_relation: tuple[str, ...],
    disable_relation: tuple[str, ...],
    min_runs: int,
    jobs: int,
    scheduler: str | None,
    **inert: Any,
) -> None:
    """Learn invariants from the traces of training runs that are known to be good."""
    from traincheck_infer.inference import infer_invariants  # noqa: PLC0415  numpy, 0.2 s
    from traincheck_infer.output import insist_on_writable, write_and_keep  # noqa: PLC0415
    from traincheck_infer.progress import Progress  # noqa: PLC0415
    from traincheck_infer.report import report, warn_of_what_is_missing  # noqa: PLC0415
    from traincheck_infer.workers import workers  # noqa: PLC0415
    from traincheck_trace_schema.reading import open_runs  # noqa: PLC0415

    began = time.perf_counter()
    _note_inert(inert)
    given = given_traces(trace_folders, traces)
    if scheduler is not None:
        given = [path.absolute() for path in given]  # its workers may stand elsewhere
    insist_on_writable(output)
    relations = _relations(enable_relation, disable_relation)
    runs = open_runs(given, strict=strict)
    if min_runs > len(runs):
        raise ConfigError(f"--min-runs {min_runs}: the traces are of {len(runs)} only")
    progress = Progress()
    try:
        with workers(progress, jobs, scheduler) as who:
            inference = infer_invariants(runs, relations, workers=who, min_runs=min_runs)
    finally:
        progress.end()
    _insist_on_steps(inference)
    warn_of_what_is_missing(runs, inference)
    if (earlier := write_and_keep(output, inference.invariants)) is not None:
        note(f"{output} held other invariants, which are kept as {earlier}")
    report(inference, output, time.perf_counter() - began)


def _relations(only: tuple[str, ...], without: tuple[str, ...]) -> Mapping[str, Relation]:
    """Load the relations; one that was not asked for by name and can't be loaded is left out."""
    from traincheck_relations.registry import load_sound_relations  # noqa: PLC0415

    loaded = load_sound_relations(only or None, without)
    for name, error in loaded.faults.items():
        if name in only:
            raise error
        warn(f"{error}; it was left out")
    if not loaded.relations:
        raise ConfigError("All relations are left out; enable one")
    return loaded.relations


def _note_inert(given: Mapping[str, Any]) -> None:
    if given["backend"]:
        note("--backend does nothing: traces are streamed, whatever it says")
    if given["disable_precond_sampling"] or given["precond_sampling_threshold"]:
        note("preconditions are found from all examples, without sampling; the option does nothing")


def _insist_on_steps(inference: Inference) -> None:
    if not any(inference.steps.values()):
        raise TraceError(
            "No training step is recorded in these traces, so nothing can be learnt from them; "
            "collect again from a script whose training loop is found, or mark its steps by hand "
            "(traincheck_instrument.start_step)"
        )


def main() -> None:
    """Run the command."""
    infer()
