"""Records a piece of training in this process, and reads back what was written."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import pytest
import torch

from traincheck_instrument import session
from traincheck_instrument.encode import Encoder, TextEncoder
from traincheck_instrument.recorder.recorder import Recorder
from traincheck_instrument.settings import RecordingSettings
from traincheck_trace_schema.codec import dumps, loads, structure_value
from traincheck_trace_schema.records import Sampling
from traincheck_trace_schema.validation import FileCheck, validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@attrs.define
class Recorded:
    """A recording, and after it the records of its shards."""

    folder: Path
    recorder: Recorder | None = None

    @property
    def shards(self) -> list[Path]:
        return sorted(self.folder.glob("trace_*.json"))

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the records of the only shard, which must be valid as a whole."""
        (shard,) = self.shards
        assert [*FileCheck(shard).problems()] == []
        records = [loads(line) for line in shard.read_text().splitlines()]
        return [record for record in records if kind in (None, record["kind"])]

    def calls(self, function: str) -> list[dict[str, Any]]:
        return [one for one in self.records("call_begin") if one["function"] == function]

    def variables(self, role: str = "parameter") -> list[dict[str, Any]]:
        """Return what is told of the variables of a role."""
        return [record for record in self.records("var") if record["role"] == role]

    def changes(self, attribute: str, role: str = "parameter") -> list[dict[str, Any]]:
        """Return the records of changes of an attribute."""
        return [
            record
            for record in self.variables(role)
            if record["event"] == "changed" and attribute in record["attributes"]
        ]


@pytest.fixture(scope="session")
def encode() -> Callable[[Any], Any]:
    """Encode a value as the recorder does; what comes out can be written, read, and is valid."""

    def encoding(value: Any) -> Any:
        encoder = Encoder()
        with torch._C.DisableTorchFunction():
            encoded = encoder(value)
            write = TextEncoder(encoder)
            texts = [write(value), write(value)]  # the second may have been remembered
        assert texts == [dumps(encoded)] * 2
        read = loads(dumps(encoded).encode())
        assert read == encoded
        place = {"thread": 0, "seq": 0, "step": 0}
        validate("trace", {"kind": "call_end", **place, "id": 0, "function": "f", "result": read})
        structure_value(read)
        return encoded

    return encoding


@pytest.fixture
def record(record_at: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Record what happens in a `with` block."""
    return functools.partial(record_at, tmp_path)


@pytest.fixture(scope="session")
def record_at() -> Callable[..., Any]:
    """Record what happens in a `with` block, into a folder."""

    @contextmanager
    def recording(
        folder: Path,
        *,
        interval: int = 1,
        warm_up: int = 0,
        budget: float | None = None,
        steps_from: Literal["source", "hand"] | None = "hand",
        **settings: Any,
    ) -> Iterator[Recorded]:
        chosen = RecordingSettings(
            script=folder / "train.py",
            output_dir=folder,
            run_id="run",
            sampling=Sampling(interval=interval, warm_up=warm_up, budget=budget),
            steps_from=steps_from,
            **settings,
        )
        current = session.begin(chosen)
        current.recorder.faults.strict = True
        try:
            yield Recorded(folder, current.recorder)
        finally:
            session.end(clean=True)

    return recording
