"""The command `traincheck-infer`. What it does stands in `inference`, imported when it runs."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traincheck_trace_schema.cli import (
    ManyValues,
    TraincheckCommand,
    given_traces,
    note,
    say,
    trace_options,
    warn,
)
from traincheck_trace_schema.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_infer.inference import Inference
    from traincheck_trace_schema.reading import Run


@click.command("infer", cls=TraincheckCommand)
@trace_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("invariants.json"),
    show_default=True,
    help="The invariant file to write.",
)
@click.option("--enable-relation", cls=ManyValues, metavar="NAME", help="Use only these relations.")
@click.option("--disable-relation", cls=ManyValues, metavar="NAME", help="Leave relations out.")
def infer(  # noqa: PLR0913  one for each option
    trace_folders: tuple[Path, ...],
    traces: tuple[Path, ...],
    *,
    strict: bool,
    output: Path,
    enable_relation: tuple[str, ...],
    disable_relation: tuple[str, ...],
) -> None:
    """Learn invariants from the traces of training runs that are known to be good."""
    from traincheck_infer.inference import infer_invariants  # noqa: PLC0415  numpy, 0.2 s
    from traincheck_relations.registry import load_relations  # noqa: PLC0415
    from traincheck_trace_schema.invariant_file import write_invariants  # noqa: PLC0415
    from traincheck_trace_schema.reading import open_runs  # noqa: PLC0415

    began = time.perf_counter()
    given = given_traces(trace_folders, traces)
    if not output.parent.is_dir():
        raise ConfigError(
            f"{output}: its folder does not exist; make it, or choose another with -o"
        )
    relations = load_relations(only=enable_relation or None, without=disable_relation)
    runs = open_runs(given, strict=strict)
    inference = infer_invariants(runs, relations)
    _insist_on_steps(inference)
    _warn_of_what_is_missing(runs, inference)
    write_invariants(output, inference.invariants)
    _report(inference, output, time.perf_counter() - began)


def _insist_on_steps(inference: Inference) -> None:
    if not any(inference.steps.values()):
        raise TraceError(
            "No training step is recorded in these traces, so nothing can be learnt from them; "
            "collect again from a script whose training loop is found, or mark its steps by hand "
            "(traincheck_instrument.start_step)"
        )


def _warn_of_what_is_missing(runs: Sequence[Run], inference: Inference) -> None:
    for run in runs:
        if not inference.steps[run.run_id]:
            warn(f"run {run.run_id} has no training step; was its training loop found?")
        for reason in run.incomplete_because():
            warn(f"run {run.run_id} is incomplete: {reason}")
        for text in run.notes():
            note(f"run {run.run_id}: {text}")
    for fault in inference.faults:
        warn(f"{fault.relation} failed and was left out: {fault.error}")
    if not inference.invariants:
        warn("no invariant was found; give longer runs (at least 5 steps) or more of them")


def _report(inference: Inference, output: Path, seconds: float) -> None:
    steps = sum(inference.steps.values())
    say(
        f"Read {_count(len(inference.steps), 'run')}: {_count(steps, 'training step')}, "
        f"{_count(inference.records, 'record')}, in {seconds:.1f} s."
    )
    say(
        f"Found {_count(len(inference.invariants), 'invariant')} among "
        f"{_count(inference.candidates, 'candidate')}:"
    )
    by_relation = Counter(invariant.relation for invariant in inference.invariants)
    for relation, number in sorted(by_relation.items()):
        say(f"  {number:6} {relation}")
    say(f"Written to {output}. Next, collect the run to be checked, and check it:")
    say(
        f"  traincheck-collect --invariants {output} --pyscript SCRIPT --models-to-track MODEL "
        "--output-dir TRACE"
    )
    say(f"  traincheck-check -f TRACE -i {output}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def main() -> None:
    """Run the command."""
    infer()
