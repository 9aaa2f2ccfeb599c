"""Begins to use an output folder: prepares it, or joins those who take part in the same run."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import TYPE_CHECKING

from traincheck_launcher.output.occupancy import Occupancy
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traincheck_launcher.output.folder import OutputFolder
    from traincheck_launcher.starting.launch import Launch

_PATIENCE_SECONDS = 600.0  # until the rank that prepares the folder has done so
_LOOK_SECONDS = 0.05


@contextlib.contextmanager
def entered(
    folder: OutputFolder, launch: Launch, *, overwrite: bool, write: Callable[[], None]
) -> Iterator[Occupancy]:
    """Use a folder; `write` writes what all who use it have in common.

    Raises:
        ConfigError: it holds traces, another run is writing into it, or it cannot be written.
    """
    folder.make()
    with _left_at_the_end(folder) as occupancy:
        with occupancy.preparing():
            if not _is_joined(folder, launch, occupancy):
                folder.prepare(overwrite=overwrite)
                write()
            occupancy.enter()
        if launch.ready is not None:
            launch.ready.touch()
        yield occupancy


@contextlib.contextmanager
def joined(folder: OutputFolder, launch: Launch) -> Iterator[None]:
    """Use a folder that another rank of this machine prepares.

    Raises:
        ConfigError: it does not.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    while launch.ready is not None and not launch.ready.exists():
        if time.monotonic() > until:
            raise ConfigError(
                f"--output-dir: {folder.path} was not prepared by the first rank of this machine "
                f"within {_PATIENCE_SECONDS:.0f} s; see what that rank says"
            )
        time.sleep(_LOOK_SECONDS)
    with _left_at_the_end(folder) as occupancy:
        occupancy.enter()
        yield


@contextlib.contextmanager
def _left_at_the_end(folder: OutputFolder) -> Iterator[Occupancy]:
    try:
        occupancy = Occupancy(folder.path)
    except OSError as error:
        raise folder.unwritable(error) from error
    try:
        yield occupancy
    finally:
        if occupancy.leave():
            folder.started.unlink(missing_ok=True)


def wait_until_last(occupancy: Occupancy) -> None:
    """Wait for the others of this run to end; a signal ends the waiting."""
    signals: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: signals.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        while not signals and not occupancy.is_last():
            time.sleep(_LOOK_SECONDS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_joined(folder: OutputFolder, launch: Launch, occupancy: Occupancy) -> bool:
    """Whether the folder has been prepared for this run, and the run goes on."""
    is_occupied = occupancy.is_occupied()
    if _holds(folder, launch) and (is_occupied or launch.rejoins):
        return True
    if is_occupied:
        raise ConfigError(
            f"--output-dir: {folder.path} is in use by another run; choose another folder"
        )
    return False


def _holds(folder: OutputFolder, launch: Launch) -> bool:
    """Whether the settings in it are those of this run."""
    try:
        document = loads(folder.settings.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("run_id") == launch.run_id
