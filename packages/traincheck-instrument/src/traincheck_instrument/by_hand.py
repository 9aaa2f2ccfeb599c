"""Recordings that a program begins itself: in a notebook, or where there is no script to start."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traincheck_instrument.current import Current
from traincheck_instrument.program.module_search import find_module

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from traincheck_instrument.settings import RecordingSettings, TensorFormat, Tracker

_SMALLEST = 10**6  # bytes; the header alone takes some ten thousand of each process


@contextmanager
def record(  # noqa: PLR0913  one for each option
    output_dir: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    modules: Sequence[str] = ("torch",),
    with_private: bool = False,
    with_descriptors: bool = False,
    with_stacks: bool = False,
    plan: str | os.PathLike[str] | None = None,
    tracker: Tracker | None = "subclass",
    tensor_format: TensorFormat = "hash",
    sampling_interval: int = 1,
    warm_up_steps: int = 0,
    overhead_budget: float | None = None,
    gzip: bool = False,
    max_trace_bytes: int | None = None,
) -> Iterator[None]:
    """Record what this process does inside the block; afterwards nothing of ours is in place.

    Models are tracked, and steps and stages are marked, by hand. Where no step is marked, the calls
    of tracked models say where steps begin. An exception that leaves the block leaves a trace
    without a footer. Inside of another recording nothing is done: that one goes on.

    Args:
        output_dir: The folder of the traces; made if it is not there.
        overwrite: Delete the traces that the folder holds.
        modules: The packages whose functions are recorded.
        with_private: Record functions that are not public, too.
        with_descriptors: Record builtins and descriptors, too.
        with_stacks: Let each call name all user code around it.
        plan: A plan of what to record, as a collection with invariants writes it (`plan.json`).
        tracker: How variables are followed; None records no variables.
        tensor_format: What is kept of a tensor.
        sampling_interval: After the warm-up, record every n-th step.
        warm_up_steps: Record so many first steps in any case.
        overhead_budget: Percent of the run that recording may take: the interval rises by itself.
        gzip: Compress the traces.
        max_trace_bytes: Stop recording when the traces together have reached this size; a million
            at least.

    Raises:
        ConfigError: an option has a value that can't be used, the folder holds traces or can't be
            written, or the plan can't be read.
    """
    import torch  # noqa: F401, PLC0415  a recording that waits for it begins now

    from traincheck_instrument.settings import RecordingSettings  # noqa: PLC0415  heavy
    from traincheck_trace_schema.records import Sampling  # noqa: PLC0415

    if Current.session is not None:
        sys.stderr.write("traincheck: a recording is at work already, and goes on\n")
        yield
        return
    folder = Path(output_dir).absolute()
    _check_modules(modules)
    settings = RecordingSettings(
        output_dir=folder,
        run_id=uuid.uuid4().hex,
        modules=tuple(modules),
        with_private=with_private,
        with_descriptors=with_descriptors,
        with_stacks=with_stacks,
        plan_path=None if plan is None else Path(plan).absolute(),
        tracker=tracker,
        tensor_format=tensor_format,
        sampling=Sampling(
            interval=sampling_interval, warm_up=warm_up_steps, budget=overhead_budget
        ),
        gzip=gzip,
        max_trace_bytes=max_trace_bytes,
    )
    _check(settings)
    _prepare(folder, overwrite=overwrite)
    with _recording(settings):
        yield


@contextmanager
def _recording(settings: RecordingSettings) -> Iterator[None]:
    from traincheck_instrument import session  # noqa: PLC0415  it imports torch
    from traincheck_instrument.process.children import SpawnedChildren  # noqa: PLC0415  not for the marks
    from traincheck_instrument.program import beginning  # noqa: PLC0415  see above
    from traincheck_trace_schema.errors import TraincheckError  # noqa: PLC0415

    children = SpawnedChildren(settings)
    try:
        session.begin(settings)
        children.install()
    except TraincheckError:
        raise
    except Exception as error:  # noqa: BLE001  a fault of ours never stops the program
        beginning.tell("recording could not begin, the program runs without it", error)
    is_clean = False
    try:
        yield
        is_clean = True
    except SystemExit:
        is_clean = True
        raise
    finally:
        children.uninstall()
        beginning.end(is_clean=is_clean)


def _check(settings: RecordingSettings) -> None:
    """Make sure that each option has a value that can be used."""
    from traincheck_trace_schema.errors import ConfigError  # noqa: PLC0415  not for the marks

    settings.of_text(settings.text(), where="record()")
    sampling = settings.sampling
    budget, size = sampling.budget, settings.max_trace_bytes
    for name, value, is_right in (
        ("sampling_interval", sampling.interval, sampling.interval >= 1),
        ("warm_up_steps", sampling.warm_up, sampling.warm_up >= 0),
        ("overhead_budget", budget, budget is None or budget > 0),
        (f"max_trace_bytes (at least {_SMALLEST})", size, size is None or size >= _SMALLEST),
    ):
        if not is_right:
            raise ConfigError(f"record(): {name} is {value!r}, which is too small")


def _check_modules(modules: Sequence[str]) -> None:
    """Make sure that the modules are there, and may be recorded."""
    from traincheck_instrument.api.scope import Scope  # noqa: PLC0415  not for the marks
    from traincheck_trace_schema.errors import ConfigError  # noqa: PLC0415  not for the marks

    if isinstance(modules, str):
        raise ConfigError(f"record(): modules is a str; write modules=({modules!r},)")
    for name in modules:
        if not isinstance(name, str):
            raise ConfigError(f"record(): modules holds {name!r}; it must hold names of modules")
        if name not in sys.modules and find_module(name, sys.path) is None:
            raise ConfigError(f"record(): modules: there is no module {name!r}")
        if Scope().is_closed(name):
            raise ConfigError(f"record(): modules: {name!r} is never recorded")


def _prepare(folder: Path, *, overwrite: bool) -> None:
    """Make the folder, or make sure that it can be used."""
    from traincheck_trace_schema.errors import ConfigError  # noqa: PLC0415  not for the marks
    from traincheck_trace_schema.records import SHARD_NAMES  # noqa: PLC0415  not for the marks

    try:
        folder.mkdir(parents=True, exist_ok=True)
        traces = [path for pattern in SHARD_NAMES for path in folder.glob(pattern)]
        if traces and not overwrite:
            raise ConfigError(
                f"output_dir: {folder} holds the traces of an earlier run; choose another folder, "
                "or pass overwrite=True to delete them"
            )
        for path in traces:
            path.unlink()
    except OSError as error:
        raise ConfigError(f"output_dir: {folder} cannot be used: {error.strerror}") from error
