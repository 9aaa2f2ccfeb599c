"""What makes two runs less than comparable: told beside the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from traincheck_check.comparing.choice import Choice
    from traincheck_check.comparing.rank import RankComparer
    from traincheck_check.comparing.result import RankComparison
    from traincheck_check.comparing.script import Raw
    from traincheck_check.comparing.windows import Lane, Reader

_NAMED = 4
_OF_STATE = frozenset(("gradients", "parameters", "buffers"))


def notes_of(
    readers: tuple[Reader, Reader],
    lanes: Mapping[Lane, RankComparer],
    ranks: Sequence[RankComparison],
    choice: Choice,
) -> Iterator[str]:
    """Yield what was compared less than it seems, and why."""
    yield from _of_ranks(readers, lanes)
    lacking = sorted(set(choice.ranks or ()) - {rank for rank, _ in lanes})
    if lacking:
        yield f"asked for, and not in both: {_ranks(lacking)}"
    for lane in sorted(lanes)[:1]:  # the others are alike
        yield from _of_headers(*(reader.headers[lane] for reader in readers))
    yield from _of_processes(lanes)
    workers = max(reader.workers for reader in readers)
    if workers:
        yield f"worker processes are not compared ({workers})"
    if (
        ranks
        and not any(each.variables for each in ranks)
        and not _OF_STATE.isdisjoint(choice.kinds)
    ):
        yield "no variable is told of in both: parameters and gradients could not be compared"


def _of_ranks(readers: tuple[Reader, Reader], lanes: Mapping[Lane, RankComparer]) -> Iterator[str]:
    told = [sorted({rank for rank, _ in reader.headers}) for reader in readers]
    if told[0] != told[1]:
        compared = sorted({rank for rank, _ in lanes})
        yield (f"A has {_ranks(told[0])}, B has {_ranks(told[1])}; compared: {_ranks(compared)}")
    worlds = [
        {header.get("world_size", 1) for header in reader.headers.values()} for reader in readers
    ]
    if worlds[0] != worlds[1]:
        sizes = (max(each, default=0) for each in worlds)
        yield "the world has {} ranks in A and {} in B: each rank sees other data".format(*sizes)


def _of_headers(a: Raw, b: Raw) -> Iterator[str]:
    for name, x, y in (
        ("the tracker", a.get("tracker"), b.get("tracker")),
        ("the format of tensors", a.get("tensor_format", "hash"), b.get("tensor_format", "hash")),
        ("torch", _version(a), _version(b)),
        ("where steps are counted from", a.get("steps_from"), b.get("steps_from")),
    ):
        if x != y:
            yield f"{name} is {x} in A and {y} in B"
    x, y = _sampling(a), _sampling(b)
    if x != y:
        yield f"A recorded {x} and B {y}; only steps that both recorded are compared"
    x, y = a["recording"].get("mode"), b["recording"].get("mode")
    if x != y:
        how = f"A was recorded by {_mode(x)} and B by {_mode(y)}"
        yield f"{how}; only what both recorded is compared"
    elif x == "plan" and a["recording"].get("plan_id") != b["recording"].get("plan_id"):
        yield "the runs were recorded by different plans; only what both recorded is compared"


def _of_processes(lanes: Mapping[Lane, RankComparer]) -> Iterator[str]:
    left_out: set[str] = set()
    threads = 0
    for comparer in lanes.values():
        for side in comparer.sides:
            left_out |= side.process.left_out
            threads += side.process.other_threads
    if left_out:
        yield f"left out, since one run does not record it: {some(sorted(left_out), 'function')}"
    if threads:
        yield f"calls of threads beside the one that trains are not compared ({threads:,})"
    for comparer in [each for _, each in sorted(lanes.items())][:1]:
        devices = [_devices(side.variables.known.values()) for side in comparer.sides]
        if all(devices) and devices[0] != devices[1]:
            yield "variables are on {} in A and on {} in B".format(
                *(", ".join(sorted(each)) for each in devices)
            )


def some(names: Sequence[str], noun: str) -> str:
    """Return how many there are, and the first of them."""
    more = ", ..." if len(names) > _NAMED else ""
    plural = "s" * (len(names) != 1)
    return f"{len(names):,} {noun}{plural} ({', '.join(names[:_NAMED])}{more})"


def _devices(variables: Collection[Mapping[str, Any]]) -> set[str]:
    found = set()
    for attributes in variables:
        told = attributes.get("data")
        tensor = told.value.get("tensor") if told and isinstance(told.value, dict) else None
        if tensor and "device" in tensor:
            found.add(str(tensor["device"]).partition(":")[0])
    return found


def _ranks(ranks: Sequence[int]) -> str:
    if not ranks:
        return "no rank"
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _version(header: Raw) -> str:
    return str((header.get("versions") or {}).get("torch", "unknown"))


def _sampling(header: Raw) -> str:
    sampling = header.get("sampling") or {}
    interval, warm_up = sampling.get("interval", 1), sampling.get("warm_up", 0)
    if interval == 1:
        return "every step"
    return f"every {interval} steps" + (f" after the first {warm_up}" if warm_up else "")


def _mode(mode: object) -> str:
    return "a plan" if mode == "plan" else "collecting everything"
