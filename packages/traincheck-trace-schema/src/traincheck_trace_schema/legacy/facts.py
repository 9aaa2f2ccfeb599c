"""What the first records of a process of 0.x tell about it, and which rank follows from that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import attrs

from traincheck_trace_schema.legacy.detection import PRE, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MANY = 1000  # records of a file, among which the facts are looked for
_DATA_PARALLEL_RANK = "_DATA_PARALLEL_RANK"
_INIT_GROUP = "torch.distributed.distributed_c10d.init_process_group"
_WORLD_SIZE, _RANK = ("world_size", "3"), ("rank", "4")  # its parameters, by name and position
_MOST_RANKS = 2**20


@attrs.define
class Facts:
    """What is known of one process."""

    pid: int
    began: int
    rank: int | None = None  # as the process group was told
    data_parallel_rank: int | None = None
    world_size: int | None = None
    tracker: Literal["proxy", "subclass", "sampler"] | None = None
    tensor_format: Literal["hash", "stats", "full"] = "hash"
    is_distributed: bool = False
    _looked_at: int = 0

    @property
    def known_rank(self) -> int | None:
        """The rank, or that in data parallelism where the other is not told."""
        return self.data_parallel_rank if self.rank is None else self.rank

    @property
    def trains(self) -> bool:
        """Whether the process takes part in training, so far as its records tell."""
        return self.known_rank is not None or self.is_distributed or self.tracker is not None

    @property
    def is_enough(self) -> bool:
        """Whether looking on would hardly tell more."""
        return self._looked_at >= _MANY

    def next_file(self) -> None:
        """Look at so many records of the next file too."""
        self._looked_at = 0

    def look_at(self, record: Mapping[str, Any], *, is_proxy: bool) -> None:
        """Take the next record of a file."""
        self._looked_at += 1
        self.began = min(self.began, record["time"])
        if (rank := _rank(record["meta_vars"].get(_DATA_PARALLEL_RANK))) is not None:
            self.data_parallel_rank = rank
        if record["type"] == STATE:
            immediate: Literal["proxy", "subclass"] = "proxy" if is_proxy else "subclass"
            self.tracker = immediate if "mode" in record else self.tracker or "sampler"
            self._look_at_data(record["attributes"].get("data"))
        elif record["function"].startswith("torch.distributed."):
            self.is_distributed = True
            if record["function"] == _INIT_GROUP and record["type"] == PRE:
                self._look_at_group(record)

    def _look_at_data(self, data: Any) -> None:
        if isinstance(data, dict):
            self.tensor_format = "stats"
        elif isinstance(data, list):
            self.tensor_format = "full"

    def _look_at_group(self, record: Mapping[str, Any]) -> None:
        given = {**(record.get("args") or {}), **(record.get("kwargs") or {})}
        rank, size = (
            next((_rank(given[key].get("int")) for key in keys if _is_object(given.get(key))), None)
            for keys in (_RANK, _WORLD_SIZE)
        )
        if rank is not None and size is not None and rank < size:
            self.rank, self.world_size = rank, size


@attrs.frozen(kw_only=True)
class Seat:
    """The place of a process in the run."""

    role: Literal["main", "worker"]
    rank: int
    world_size: int


def seats(processes: Sequence[Facts]) -> dict[int, Seat]:
    """Give each process its seat, by its id.

    Those whose rank is told are the main processes; where none is, those that track variables or
    use torch.distributed, in the order of their ids; where none does, the one that began first. All
    others are workers, and which rank started them is not known: they go with rank 0.
    """
    told = [one for one in processes if one.known_rank is not None]
    first = min(processes, key=lambda one: (one.began, one.pid))
    mains = told or [one for one in processes if one.trains] or [first]
    mains = sorted(mains, key=lambda one: (one.known_rank or 0, one.pid))
    ranks = [one.known_rank for one in mains]
    # With other kinds of parallelism beside it, a rank in data parallelism is that of several.
    is_told = None not in ranks and len(set(ranks)) == len(ranks)
    by_pid = {
        one.pid: rank if is_told and rank is not None else order
        for order, (one, rank) in enumerate(zip(mains, ranks, strict=True))
    }
    sizes = [one.world_size for one in mains if one.world_size is not None]
    world_size = max([*sizes, max(by_pid.values()) + 1])
    return {
        one.pid: Seat(
            role="main" if one.pid in by_pid else "worker",
            rank=by_pid.get(one.pid, 0),
            world_size=world_size,
        )
        for one in processes
    }


def _is_object(raw: Any) -> bool:
    return isinstance(raw, dict)


def _rank(raw: Any) -> int | None:
    """Return a rank, which scripts that read it from the environment give as a text."""
    if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) < len("1000000"):
        raw = int(raw)
    return raw if type(raw) is int and 0 <= raw < _MOST_RANKS else None
