"""Records a piece of training in this process, and reads back what was written."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from traincheck_instrument import session
from traincheck_instrument.recorder import Recorder
from traincheck_instrument.settings import RecordingSettings
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.records import Sampling
from traincheck_trace_schema.validation import validate

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
        """Return the records of the only shard, each of which must be valid."""
        (shard,) = self.shards
        records = [loads(line) for line in shard.read_text().splitlines()]
        for record in records:
            validate("trace", record)
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


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Any]:
    @contextmanager
    def recording(
        *, interval: int = 1, warm_up: int = 0, plan_path: Path | None = None
    ) -> Iterator[Recorded]:
        settings = RecordingSettings(
            script=tmp_path / "train.py",
            output_dir=tmp_path,
            run_id="run",
            sampling=Sampling(interval=interval, warm_up=warm_up),
            plan_path=plan_path,
        )
        current = session.begin(settings)
        current.recorder.faults.strict = True
        try:
            yield Recorded(tmp_path, current.recorder)
        finally:
            session.end(clean=True)

    return recording
