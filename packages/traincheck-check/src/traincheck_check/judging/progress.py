"""How far the training of each rank came, as its trace tells while it is read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.results import RankProgress

if TYPE_CHECKING:
    from traincheck_relations.replay import Source
    from traincheck_trace_schema.reading import StreamItem

KINDS = frozenset(("header", "step", "footer"))


@attrs.define(eq=False)
class _Process:
    """What a main process told of its training."""

    rank: int
    restart: int
    steps: int = 0
    recorded: int = 0
    first: int | None = None
    last: int | None = None
    ended: bool = False
    recording_share: float | None = None

    def begin(self, record: dict[str, Any]) -> None:
        """Count a step that begins."""
        step = record["step"]
        self.steps += 1
        self.recorded += record.get("sampled") is not False
        self.first = step if self.first is None else min(step, self.first)
        self.last = step if self.last is None else max(step, self.last)

    def end(self, record: dict[str, Any]) -> None:
        """Take note of the footer."""
        self.ended = True
        whole, part = record.get("seconds"), record.get("recording_seconds")
        if whole and part is not None:
            self.recording_share = min(1.0, part / whole)


class Progress:
    """Follows the main processes of a run; to be given the records of `KINDS`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._processes: dict[int, _Process] = {}

    def take(self, item: StreamItem) -> None:
        """Take the next of the records."""
        record, kind = item.record, item.record["kind"]
        if kind == "header":
            self._meet(item.process, record)
        elif (process := self._processes.get(item.process)) is None:
            return
        elif kind == "footer":
            process.end(record)
        elif record.get("eval_step") is None:
            process.begin(record)

    def ranks(self) -> tuple[RankProgress, ...]:
        """Return how far each rank came, over all its restarts."""
        by_rank: defaultdict[int, list[_Process]] = defaultdict(list)
        for process in self._processes.values():
            by_rank[process.rank].append(process)
        return tuple(_joined(rank, by_rank[rank]) for rank in sorted(by_rank))

    def _meet(self, process: int, record: dict[str, Any]) -> None:
        """Take note of a header, which may tell anew of which rank a process is."""
        if record["role"] != "main":
            self._processes.pop(process, None)
            return
        restart = self._source.shards[process].header.restart
        self._processes.setdefault(process, _Process(0, restart)).rank = record["rank"]


def uneven(ranks: tuple[RankProgress, ...]) -> str:
    """Say which ranks ended before others did, or nothing if none: they did less of the work."""
    last = {each.rank: -1 if each.last is None else each.last for each in ranks}
    most = max(last.values(), default=-1)
    early = [rank for rank, step in last.items() if step < most]
    if not early:
        return ""
    shown = ", ".join(f"rank {rank} at {_step(last[rank])}" for rank in early[:_TOLD])
    more = f" and {len(early) - _TOLD} more" if len(early) > _TOLD else ""
    return f"ranks ended at different steps: {shown}{more}, the others at {_step(most)}"


_TOLD = 4  # ranks that are named


def _step(number: int) -> str:
    return "no step" if number < 0 else f"step {number}"


def _joined(rank: int, processes: list[_Process]) -> RankProgress:
    newest = max(processes, key=lambda each: (each.restart, each.steps))
    firsts = [each.first for each in processes if each.first is not None]
    lasts = [each.last for each in processes if each.last is not None]
    return RankProgress(
        rank=rank,
        steps=sum(each.steps for each in processes),
        recorded=sum(each.recorded for each in processes),
        first=min(firsts, default=None),
        last=max(lasts, default=None),
        ended=newest.ended,
        recording_share=newest.recording_share,
    )
