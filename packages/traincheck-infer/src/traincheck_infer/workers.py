"""Runs tasks here, in processes of this machine, or on the workers of a Dask cluster.

The results come in the order of the tasks, whoever did them. Only with several workers is joblib
imported, and Dask only with a scheduler.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

import attrs

from traincheck_infer.progress import Progress
from traincheck_infer.reading import folder_of
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_infer.reading import Task
    from traincheck_relations.engine import Tell

_ResultT_co = TypeVar("_ResultT_co", covariant=True)
_CONNECT_SECONDS = 10
_PORT = 8786  # Dask's own


class Job(Protocol[_ResultT_co]):
    """A function that does a task."""

    def __call__(self, task: Task, tell: Tell | None = None) -> _ResultT_co:
        """Do the task."""


@attrs.frozen
class Workers:
    """Who does the tasks: so many at a time, in processes of this machine unless it is one."""

    progress: Progress
    number: int = 1
    is_remote: bool = False

    def run(self, what: str, job: Job[_ResultT_co], tasks: Sequence[Task]) -> list[_ResultT_co]:
        """Do each task; return the results in the order of the tasks."""
        if not self.is_remote and (self.number == 1 or len(tasks) <= 1):
            return [self._here(what, job, tasks, at) for at in range(len(tasks))]
        from joblib import (  # type: ignore[import-untyped]  # noqa: PLC0415  few need it
            Parallel,
            delayed,
        )

        results = []
        parallel = Parallel(n_jobs=self.number, return_as="generator")
        for done, result in enumerate(parallel(delayed(job)(task) for task in tasks), start=1):
            results.append(result)
            self.progress.begin(f"{what}, {done} of {len(tasks)} parts done")
        return results

    def groups(self, names: Iterable[str], runs: int) -> list[tuple[str, ...]]:
        """Divide relations so that all workers have something to do, however few the runs."""
        ordered = sorted(names)
        number = min(-(-self.number // max(runs, 1)), len(ordered)) or 1
        return [tuple(ordered[at::number]) for at in range(number)]

    def _here(
        self, what: str, job: Job[_ResultT_co], tasks: Sequence[Task], at: int
    ) -> _ResultT_co:
        which = f"run {at + 1} of {len(tasks)}, " if len(tasks) > 1 else ""
        self.progress.begin(f"{what} in {which}{folder_of(tasks[at].run)}")
        return job(tasks[at], self.progress.read)


@contextlib.contextmanager
def workers(progress: Progress, jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """Give workers, which are let go at the end.

    Args:
        progress: Where to tell how far they are.
        jobs: How many processes of this machine.
        scheduler: The address of a Dask scheduler; None: this machine.

    Raises:
        ConfigError: The scheduler can't be used.
    """
    if scheduler is None:
        with _dying_told():
            yield Workers(progress, jobs)
        return
    with _client(scheduler) as number:
        yield Workers(progress, number, is_remote=True)


@contextlib.contextmanager
def _client(scheduler: str) -> Iterator[int]:
    """Connect to a scheduler, and let joblib use it; give how many tasks run at a time."""
    try:
        from distributed import (  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
            Client,  # of the extra
        )
        from joblib import parallel_config  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("--scheduler needs Dask: pip install 'traincheck-infer[dask]'") from error
    try:
        _knock(scheduler)  # a client that finds nobody tells so again when it is collected
        client: Any = Client(  # type: ignore[no-untyped-call, unused-ignore]  # it has no types
            scheduler, timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--scheduler {scheduler}: no Dask scheduler answers there within "
            f"{_CONNECT_SECONDS} s; give the address that it printed, as tcp://host:8786"
        ) from error
    with client:
        number = sum(client.nthreads().values())
        if not number:
            raise ConfigError(
                f"--scheduler {scheduler}: it has no workers; start some with: dask worker "
                f"{scheduler}"
            )
        with parallel_config(backend="dask", client=client):
            yield number


def _knock(scheduler: str) -> None:
    """Connect to an address of TCP, and hang up.

    Raises:
        OSError: Nobody listens there, or it is no address.
        ValueError: Its port is no number.
    """
    scheme, _, rest = scheduler.rpartition("://")
    if scheme in {"", "tcp", "tls"}:
        address = urlsplit(f"//{rest}")
        place = address.hostname or "", address.port or _PORT
        socket.create_connection(place, timeout=_CONNECT_SECONDS).close()


@contextlib.contextmanager
def _dying_told() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "TerminatedWorkerError":  # its module is joblib's, maybe unused
            raise
        raise ConfigError(
            "A worker process was killed, which lack of memory does; use a smaller -j"
        ) from error
