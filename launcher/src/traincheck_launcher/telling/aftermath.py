"""What is said on stderr when the program has ended: what was recorded, and what to do next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from traincheck_instrument.trackers.limits import unseen_by
from traincheck_launcher.output.folder import from_here
from traincheck_launcher.preparing.program import NO_TRAINING_LOOP
from traincheck_launcher.starting.choice import way_of
from traincheck_launcher.starting.ports import taken_port
from traincheck_launcher.telling.ended_by_signal import signal_in
from traincheck_launcher.telling.first_failure import first_failure
from traincheck_launcher.telling.trace_report import report
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.glance import glance
from traincheck_trace_schema.reading import open_runs
from traincheck_trace_schema.reading.attendance import named_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_launcher.options import CollectOptions
    from traincheck_launcher.output.folder import OutputFolder
    from traincheck_launcher.preparing.preparation import Preparation
    from traincheck_trace_schema.reading import Run
    from traincheck_trace_schema.summary import TraceSummary


def aftermath(
    folder: OutputFolder, options: CollectOptions, prepared: Preparation, code: int
) -> Iterator[str]:
    """Yield what is to be said, line by line."""
    yield from _failure(folder, code)
    if not any(folder.traces()):
        yield f"traincheck: no trace was written: {_why_none(folder, options, code)}"
        if options.shscript is None and not code:
            yield f"warning: no training step was seen; {NO_TRAINING_LOOP}"
        return
    try:
        trace = glance(_run_of(folder, prepared.run_id))
    except TraceError as error:
        yield f"warning: {error}"
        return
    where = shlex.quote(from_here(folder.path))
    known = unseen_by(prepared.tracker, prepared.plan)
    yield from (f"traincheck: {line}" for line in report(trace, where, options.models, known))
    yield from _incomplete(trace)
    if not any(process.steps.count for process in trace.processes):
        if not code:
            yield f"warning: no training step was seen; {NO_TRAINING_LOOP}"
        return
    if prepared.wants_variables and options.models and not _has_parameters(trace):
        names = ", ".join(options.models)
        yield (
            f"warning: no parameters are recorded: --models-to-track: {names} never held a "
            "torch.nn.Module"
        )
    if code and not options.invariants:
        yield (
            "traincheck: a run that failed is no reference: learn invariants (traincheck-infer) "
            "from one that ends with exit code 0"
        )
        return
    if not options.checks:  # else that is done
        yield f"traincheck: next: {_next_command(where, options)}"


def _failure(folder: OutputFolder, code: int) -> Iterator[str]:
    """Yield how the program failed, if it has."""
    if not code:
        return
    by = f" ({name})" if (name := signal_in(code)) else ""
    yield f"traincheck: the program ended with exit code {code}{by}"
    if first := first_failure(folder.path, folder.outputs()):
        yield f"traincheck: {first}"
    for port in {taken_port(output) for output in folder.outputs()} - {None}:
        yield (
            f"traincheck: port {port} of this machine is used by another program: choose another "
            "with --master-port or --rdzv-endpoint, or give --standalone"
        )


def _run_of(folder: OutputFolder, run_id: str) -> Run:
    """Open what this run wrote; the program may have put other traces into the folder."""
    runs = open_runs([folder.path])
    return next((run for run in runs if run.run_id == run_id), runs[0])


def _incomplete(trace: TraceSummary) -> Iterator[str]:
    """Yield what is missing of a trace."""
    if unfinished := _unfinished(trace):
        yield (
            f"traincheck: the trace is incomplete: {named_ranks(unfinished)} did not end cleanly, "
            "there is no footer"
        )
    if missing := _missing(trace):
        yield (
            f"traincheck: {named_ranks(missing)} of {trace.lead.header.world_size} wrote nothing "
            "here: name the folders of all machines in the next command"
        )


def _unfinished(trace: TraceSummary) -> list[int]:
    """Return the ranks of main processes that wrote no footer."""
    unfinished = {
        process.header.rank
        for process in trace.processes
        if process.header.role == "main" and not process.has_footer
    }
    return sorted(unfinished)


def _missing(trace: TraceSummary) -> list[int]:
    """Return the ranks of which there is no trace: they wrote to another machine, say."""
    seen = {process.header.rank for process in trace.processes}
    return sorted({*range(trace.lead.header.world_size)} - seen)


def _has_parameters(trace: TraceSummary) -> bool:
    return any(variable.role == "parameter" for variable in trace.variables.values())


def _next_command(where: str, options: CollectOptions) -> str:
    if not options.invariants:
        return f"traincheck-infer -f {where} -o invariants.json"
    files = " ".join(shlex.quote(str(path)) for path in options.invariants)
    return f"traincheck-check -f {where} -i {files}"


def _why_none(folder: OutputFolder, options: CollectOptions, code: int) -> str:
    if (why := way_of(options).why_not_started(folder.entry)) is not None:
        return why
    if code and options.shscript is None:
        return "the program was not started, or ended before anything was recorded (see above)"
    return "the program made no call that is recorded, or recording could not begin (see above)"
