"""The rules between the shards of a run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from traincheck_trace_schema.validation.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_Restart: TypeAlias = tuple[str, int]  # of which run, which


@attrs.frozen(kw_only=True)
class ShardFacts:
    """What a shard says that the others of its run must not contradict."""

    path: Path
    run_id: str
    restart: int
    rank: int
    world_size: int
    begin_ns: int  # of the wall clock of its host
    end_ns: float  # infinite if it tells no time
    trains: bool  # it is of a main process, and has steps

    @classmethod
    def of(
        cls, path: Path, header: Mapping[str, Any], *, last_ns: int | None, steps: int
    ) -> ShardFacts:
        """Make them of a header, the last time that was told, and the number of steps."""
        begin, monotonic = header["clock"]["wall_ns"], header["clock"]["monotonic_ns"]
        return cls(
            path=path,
            run_id=header["run_id"],
            restart=header.get("restart", 0),
            rank=header["rank"],
            world_size=header["world_size"],
            begin_ns=begin,
            end_ns=math.inf if last_ns is None else begin + last_ns - monotonic,
            trains=header["role"] == "main" and steps > 0,
        )

    def beside(self, others: Iterable[ShardFacts]) -> ShardFacts | None:
        """Return the first of others that was written at the same time."""
        for other in others:
            if self.begin_ns <= other.end_ns and other.begin_ns <= self.end_ns:
                return other
        return None


@attrs.define
class RunRules:
    """Takes the shards of one or more runs, one by one.

    Programs may start processes of a rank one after another, or one that only waits for others:
    so only main processes that train, and at one time, contradict one another.
    """

    _of_rank: dict[tuple[_Restart, int], list[ShardFacts]] = attrs.field(factory=dict)
    _of_size: dict[_Restart, dict[int, list[ShardFacts]]] = attrs.field(factory=dict)
    _runs: dict[Path, list[str]] = attrs.field(factory=dict)  # folder: ids

    def take(self, facts: ShardFacts) -> Iterator[Finding]:
        """Yield what is wrong with a shard beside those that were taken before."""
        ids = self._runs.setdefault(facts.path.parent, [])
        if facts.run_id not in ids:
            ids.append(facts.run_id)
        if not facts.trains:
            return
        restart = facts.run_id, facts.restart
        same = self._of_rank.setdefault((restart, facts.rank), [])
        sizes = self._of_size.setdefault(restart, {})
        others = [each for size in sizes if size != facts.world_size for each in sizes[size]]
        where = f"restart {facts.restart} of run {facts.run_id!r}"
        if twin := facts.beside(same):
            what = f"is a second main shard of rank {facts.rank} in {where}, beside {twin.path}"
            yield Finding(None, what)
        elif other := facts.beside(others):
            got = f"{facts.world_size}, and {other.world_size} in {other.path}"
            yield Finding(None, f"field 'world_size' must be one number in {where}; got {got}")
        same.append(facts)
        sizes.setdefault(facts.world_size, []).append(facts)

    def notes(self) -> Iterator[tuple[Path, str]]:
        """Yield what is worth knowing about a folder."""
        for folder, ids in self._runs.items():
            if len(ids) > 1:
                yield folder, f"holds {len(ids)} runs: {', '.join(map(repr, ids))}"
