"""Which ranks of the world take part."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_trace_schema.records import Header

_TOLD = 8  # ranks that are named


def absent_ranks(processes: Iterable[tuple[Header, bool]]) -> tuple[int, ...]:
    """Return the ranks of the world that have no main process, or none that goes on.

    A rank that was restarted has one that goes on. The world is as large as the processes of the
    last restart say.

    Args:
        processes: What is known of each process, and whether it is gone: it wrote no footer, and
            nothing more comes from it.
    """
    mains = [(header, is_gone) for header, is_gone in processes if header.role == "main"]
    if not mains:
        return ()
    last = max(header.restart for header, _ in mains)
    world_size = max(header.world_size for header, _ in mains if header.restart == last)
    present = {header.rank for header, is_gone in mains if not is_gone}
    return tuple(rank for rank in range(world_size) if rank not in present)


def missing_ranks(headers: Iterable[Header]) -> Iterator[str]:
    """Say which ranks of the world left no trace."""
    mains = [header for header in headers if header.role == "main"]
    world_size = max((header.world_size for header in mains), default=0)
    present = {header.rank for header in mains}
    missing = [rank for rank in range(world_size) if rank not in present]
    if missing:
        yield f"{named_ranks(missing)} of {world_size} left no trace"


def named_ranks(ranks: Sequence[int]) -> str:
    """Return ranks as a message has them."""
    more = f" and {len(ranks) - _TOLD} more" if len(ranks) > _TOLD else ""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks[:_TOLD]))}{more}"
