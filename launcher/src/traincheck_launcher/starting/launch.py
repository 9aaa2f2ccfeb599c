"""Which part this command has in a run: all of it, one rank of torchrun, or one machine of several.

What all parts have to agree on, the name of the run and its folder, each finds out by itself, from
what torchrun gives all of them alike.
"""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_launcher.options import CollectOptions

_UNNAMED = frozenset({"", "none"})  # what torchrun calls a job that nobody has named
_ONE = frozenset({"1", "1:1"})


@attrs.frozen(kw_only=True)
class Launch:
    """The part of this command in a run."""

    run_id: str
    suffix: str  # of the default folder: when the run began, or its name
    leads: bool = True  # writes what the ranks of this machine have in common
    ready: Path | None = None  # the file by which it lets them know; None: it is on its own
    tells: bool = True  # what was recorded, in the end
    rejoins: bool = False  # a folder with this run's name holds this run, whoever is in it now
    waits: bool = False  # before it tells, for the others to end
    part: str = ""  # what its log is told from those of the others by


def launch_of(options: CollectOptions, environment: Mapping[str, str]) -> Launch:
    """Find out which part this command has.

    Raises:
        ConfigError: the parts cannot know one another, or torchrun is to run inside torchrun.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        return _rank_of(options, environment)
    machines = _asked("nnodes", options, environment)
    if not options.torchrun or machines is None or machines in _ONE:
        made_up = uuid.uuid4().hex
        return Launch(run_id=options.run_id or made_up, suffix=_at(time.time()))
    run_id = options.run_id or _asked("rdzv-id", options, environment) or ""
    if run_id in _UNNAMED:
        raise ConfigError(_nameless(f"--nnodes {machines}"))
    node = _asked("node-rank", options, environment)
    part = f"node{node}" if node is not None else f"{os.uname().nodename}_p{os.getpid()}"
    return Launch(run_id=run_id, suffix=_as_name(run_id), part=part)


def _rank_of(options: CollectOptions, environment: Mapping[str, str]) -> Launch:
    """Return the part of a command that torchrun has started."""
    if options.torchrun:
        raise ConfigError(
            f"{options.torchrun[0].partition('=')[0]}: torchrun has started this command already; "
            "give this option to that torchrun"
        )
    rank, local = (int(environment.get(name, "0")) for name in ("RANK", "LOCAL_RANK"))
    restarts = int(environment.get("TORCHELASTIC_RESTART_COUNT", "0"))
    is_alone = environment.get("GROUP_WORLD_SIZE", "1") == "1"
    run_id = options.run_id or ("" if is_alone else environment["TORCHELASTIC_RUN_ID"])
    if run_id in _UNNAMED and not is_alone:
        raise ConfigError(_nameless("torchrun on several machines"))
    folder = _folder_of_torchrun(environment)
    return Launch(
        run_id=run_id or uuid.uuid5(uuid.NAMESPACE_URL, folder.as_uri()).hex,
        suffix=_as_name(run_id) or _at(_began(folder)),
        leads=local == 0,
        ready=folder / "traincheck_ready",
        tells=rank == 0,
        waits=True,
        rejoins=restarts > 0,
        part=f"r{rank}" if rank else "",
    )


def _folder_of_torchrun(environment: Mapping[str, str]) -> Path:
    """Return the folder that torchrun makes for this one start of it, on this machine.

    The file for a rank's error is in `<folder>/attempt_<restarts>/<rank>`.
    """
    file = Path(environment.get("TORCHELASTIC_ERROR_FILE", ""))
    if len(file.parents) <= 3:  # noqa: PLR2004  the file is that deep in it
        raise ConfigError(
            "torchrun has not said where errors go (TORCHELASTIC_ERROR_FILE), by which its ranks "
            "know one another; leave out --logs-specs"
        )
    return file.absolute().parents[2]


def _began(folder: Path) -> float:
    """Return when torchrun made the folders of its ranks; the same time in all of them."""
    first = folder / "attempt_0"
    return (first if first.exists() else folder).stat().st_mtime


def _asked(name: str, options: CollectOptions, environment: Mapping[str, str]) -> str | None:
    """Return what torchrun is told, as an option or by its variable."""
    for option in options.torchrun:
        key, _, value = option.partition("=")
        if key == f"--{name}":
            return value
    return environment.get(f"PET_{name.replace('-', '_').upper()}")


def _at(seconds: float) -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.localtime(seconds))


def _as_name(run_id: str) -> str:
    """Return what of a run's name may stand in the name of a folder."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in run_id)


def _nameless(what: str) -> str:
    return (
        f"{what}: the machines must know that they take part in the same run; give each the same "
        "--rdzv-id or --run-id, and one of its own for each run"
    )
