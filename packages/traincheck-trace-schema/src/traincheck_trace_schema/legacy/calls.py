"""The calls of 0.x as those of 1.0: numbered, nested by the stack of their thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.constraints import shown
from traincheck_trace_schema.legacy.contexts import Contexts
from traincheck_trace_schema.legacy.names import function_fields
from traincheck_trace_schema.legacy.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@attrs.define
class _Thread:
    """The calls of one thread that have not ended, innermost last."""

    open: dict[str, int] = attrs.field(factory=dict)  # 0.x's id of a call, its number
    contexts: Contexts = attrs.field(factory=Contexts)


@attrs.define
class Calls:
    """Follows the calls of a process.

    A thread makes one call at a time, so the calls that it has begun and not ended form a stack,
    and the parent of a new one is the last of them. A call whose end is missing is left with the
    one around it.
    """

    unmatched: int = 0  # ends of calls whose begin is not there
    _number: int = 0
    _threads: dict[int, _Thread] = attrs.field(factory=dict)
    _names: dict[str, str] = attrs.field(factory=dict)

    def is_open(self, thread: int) -> bool:
        """Whether a thread has begun a call that it has not ended."""
        return thread in self._threads and bool(self._threads[thread].open)

    def begin(self, thread: int, record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what stands for a record of a call's begin."""
        name = record["function"]
        if name not in self._names:
            fields = function_fields(name)
            self._names[name] = fields["name"]
            yield {"kind": "function", **fields}
        stack = self._threads.setdefault(thread, _Thread())
        stack.contexts.on_begin(record)
        begun: dict[str, Any] = {
            "kind": "call_begin",
            "id": self._number,
            "parent": next(reversed(stack.open.values()), None),
            "function": self._names[name],
            **_given(record),
            "ctx": stack.contexts.active(),
            "t_ns": record["time"],
        }
        stack.open.pop(record["func_call_id"], None)
        stack.open[record["func_call_id"]] = self._number
        self._number += 1
        yield begun

    def end(self, thread: int, record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what stands for a record of a call's end, if its begin is there."""
        stack = self._threads.get(thread)
        id_ = record["func_call_id"]
        if stack is None or id_ not in stack.open:
            self.unmatched += 1
            return
        number = stack.open[id_]
        while stack.open.popitem()[0] != id_:
            pass
        stack.contexts.on_end(record)
        function = self._names.get(record["function"], record["function"])
        place = {"id": number, "function": function}
        if "exception" in record:
            yield {
                "kind": "call_error",
                **place,
                "exception": _text(record["exception"]),
                "message": _text(record.get("exception_msg", "")),
                "t_ns": record["time"],
            }
            return
        ended = {"kind": "call_end", **place, "t_ns": record["time"]}
        if "return_values" in record:
            ended["result"] = value(record["return_values"])
        yield ended


def _text(raw: Any) -> str:
    return raw if isinstance(raw, str) else shown(raw)


def _given(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object and the arguments of a call.

    0.x tells the position of an argument and not its name, so its position is its name here.
    """
    by_position, by_name = record.get("args"), record.get("kwargs")
    if by_position is None and by_name is None:
        return {}
    arguments = {**(by_position or {}), **(by_name or {})}
    given: dict[str, Any] = {}
    if record.get("is_bound_method") is True and "0" in arguments:
        given["self"] = value(arguments.pop("0"))
    return {"args": {name: value(item) for name, item in arguments.items()}, **given}
