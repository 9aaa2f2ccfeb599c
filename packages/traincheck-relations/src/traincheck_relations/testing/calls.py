"""Builds calls with arguments and results, for the tests of relations about them.

>>> import tempfile
>>> from pathlib import Path
>>> from traincheck_relations.testing.traces import TraceBuilder
>>> rank = TraceBuilder(Path(tempfile.mkdtemp())).rank()
>>> add_call(rank, "f", {"x": batch((8, 2))}, result=batch(()))
>>> rank.records[-1]["result"]["tensor"]["shape"]
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traincheck_relations.testing.traces import ShardBuilder
    from traincheck_trace_schema.values import Json


def batch(
    shape: Sequence[int] = (8, 3),
    dtype: str = "float32",
    *,
    requires_grad: bool = False,
    content: str | None = None,
    finite: bool | None = None,
    **facts: bool,
) -> Json:
    """Return how a tensor that a call is given stands in a trace; equal `content`, equal tensor."""
    tensor: dict[str, Json] = {"shape": list(shape), "dtype": dtype, "device": "cpu"}
    if requires_grad:
        tensor["requires_grad"] = True
    if content is not None:
        tensor["digest"] = f"test:{content.encode().hex()}"
    if finite is not None:
        tensor["finite"] = finite
    if facts:
        tensor["facts"] = dict(facts)
    return {"tensor": tensor}


def module(type_: str, *, training: bool = True, name: str | None = None) -> Json:
    """Return how a module stands in a trace, as `self` of its methods; tracked, with its name."""
    named: dict[str, Json] = {} if name is None else {"name": name}
    return {"object": {"type": type_, **named, "attributes": {"training": training}}}


def add_call(  # noqa: PLR0913  what there is to tell of a call
    rank: ShardBuilder,
    function: str,
    args: Mapping[str, Json] | None = None,
    *,
    result: Json = None,
    of: Json = None,
    ctx: Mapping[str, Json] | None = None,
) -> None:
    """Add a call that returns, and calls nothing."""
    with rank.call(function, args, of=of, ctx=dict(ctx or {})):
        pass
    rank.records[-1] = {**rank.records[-1], "result": result}
