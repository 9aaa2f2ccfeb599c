"""Records a piece of training in this process, and reads back what was written."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import torch

from traincheck_instrument import session
from traincheck_instrument.encode import Encoder
from traincheck_instrument.recorder import Recorder
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

    def changes(self, attribute: str) -> list[dict[str, Any]]:
        """Return the records of changes of an attribute."""
        return [
            record
            for record in self.records("var")
            if record["event"] == "changed" and attribute in record["attributes"]
        ]


@pytest.fixture(scope="session")
def encode() -> Callable[[Any], Any]:
    """Encode a value as the recorder does; what comes out can be written, read, and is valid."""

    def encoding(value: Any) -> Any:
        with torch._C.DisableTorchFunction():
            encoded = Encoder()(value)
        read = loads(dumps(encoded).encode())
        assert read == encoded
        place = {"thread": 0, "seq": 0, "step": 0}
        validate("trace", {"kind": "call_end", **place, "id": 0, "function": "f", "result": read})
        structure_value(read)
        return encoded

    return encoding


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Any]:
    @contextmanager
    def recording(*, interval: int = 1, warm_up: int = 0, **settings: Any) -> Iterator[Recorded]:
        chosen = RecordingSettings(
            script=tmp_path / "train.py",
            output_dir=tmp_path,
            run_id="run",
            sampling=Sampling(interval=interval, warm_up=warm_up),
            **settings,
        )
        current = session.begin(chosen)
        current.recorder.faults.strict = True
        try:
            yield Recorded(tmp_path, current.recorder)
        finally:
            session.end(clean=True)

    return recording
