"""Builds small traces of TrainCheck 0.x, for tests: plain files, as its programs wrote them."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@attrs.define
class OldTrace:
    """A folder of 0.x in the making; its records get rising times."""

    folder: Path
    _files: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict, init=False)
    _time: int = attrs.field(default=1000, init=False)

    def thread(self, pid: int = 7, tid: int = 70) -> OldThread:
        """Return a thread of a process, which adds its records to the trace."""
        return OldThread(self, pid, tid)

    def add(self, name: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Add a record to a file; it may be changed until `write`."""
        self._time += 10
        added = {**record, "time": self._time}
        self._files.setdefault(name, []).append(added)
        return added

    def write(self, *, compressed: bool = False) -> Path:
        """Write the files; return the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, records in self._files.items():
            text = "".join(f"{json.dumps(record)}\n" for record in records).encode()
            if compressed:
                (self.folder / f"{name}.gz").write_bytes(gzip.compress(text))
            else:
                (self.folder / name).write_bytes(text)
        return self.folder


@attrs.define
class OldThread:
    """One thread of a process; each method adds what 0.x would write."""

    trace: OldTrace
    pid: int
    tid: int
    meta_vars: dict[str, Any] = attrs.field(factory=lambda: {"step": 0}, init=False)
    _calls: int = attrs.field(default=0, init=False)

    def at(self, **meta_vars: Any) -> None:
        """Change what the following records say of where they stand."""
        self.meta_vars = {**self.meta_vars, **meta_vars}

    @contextmanager
    def call(
        self,
        function: str,
        args: Mapping[str, Any] | None = None,
        *,
        address: int | None = None,
        raises: str | None = None,
        returns: Any = None,
        **kwargs: Any,
    ) -> Iterator[None]:
        """Record a call around what the block adds.

        Args:
            function: Its name by place of definition.
            args: Its arguments by position, as `{"0": {"int": 3}}`.
            address: That of the object whose method it is.
            raises: The exception that it raises.
            returns: The value that it returns.
            kwargs: Its arguments by name.
        """
        self._calls += 1
        about = {
            "func_call_id": f"{self.pid}_{self.tid}_{self._calls}",
            "function": function,
            "is_bound_method": address is not None,
            "obj_id": address,
        }
        self._add("function_call (pre)", **about, args=dict(args or {}), kwargs=kwargs)
        yield
        if raises is None:
            returned = {"NoneType": None} if returns is None else returns
            self._add("function_call (post)", **about, return_values=returned)
        else:
            kind = "function_call (post) (exception)"
            self._add(kind, **about, exception=raises, exception_msg="")

    def state(
        self,
        name: str,
        data: Any = 1,
        grad: Any = None,
        *,
        proxy: bool = False,
        mode: str | None = None,
        **attributes: Any,
    ) -> None:
        """Record a variable's state, in its own file or in the log of the proxies."""
        dumped = {
            "data": data,
            "grad": grad,
            "dtype": "torch.float32",
            "shape": [2, 3],
            "requires_grad": True,
            "is_cpu": True,
            "is_leaf": True,
            "ndim": 2,
            "_TRAINCHECK_data_ID": 140,
            **attributes,
        }
        about = {"var_name": name, "var_type": "torch.nn.Parameter", "attributes": dumped}
        if proxy or mode is not None:
            about["mode"] = mode or "update"
        file = "proxy_log.json" if proxy else f"trace_VAR_{self.pid}_{self.tid}.log"
        self._add("state_change", file, **about)

    def _add(self, kind: str, file: str | None = None, /, **fields: Any) -> None:
        record = {
            "process_id": self.pid,
            "thread_id": self.tid,
            "meta_vars": self.meta_vars,
            "type": kind,
            **fields,
        }
        self.trace.add(file or f"trace_API_{self.pid}_{self.tid}.log", record)
