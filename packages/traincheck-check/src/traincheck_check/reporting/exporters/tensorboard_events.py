"""Event files of TensorBoard, written by its own writer: scalars by step, the diagnosis as text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_check.reporting.exporters.library import imported
from traincheck_check.reporting.exporters.metrics import metrics_of
from traincheck_check.reporting.screen import verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from traincheck_check.reporting.api import Report
    from traincheck_check.reporting.exporters.series import Advance
    from traincheck_trace_schema.results import Summary

_EXTRA = "tensorboard"
_PREFIX = "traincheck"  # of tags: the folder may be that of the training's own events


@attrs.frozen
class EventLibrary:
    """What is needed of TensorBoard."""

    event: Any  # the protocol buffers' classes
    summary: Any
    tensor: Any
    types: Any
    text: Any
    writer: Any

    @classmethod
    def imported(cls) -> EventLibrary:
        """Import it.

        Raises:
            ConfigError: It is not installed.
        """
        proto = "tensorboard.compat.proto"
        return cls(
            event=imported(f"{proto}.event_pb2", extra=_EXTRA).Event,
            summary=imported(f"{proto}.summary_pb2", extra=_EXTRA).Summary,
            tensor=imported(f"{proto}.tensor_pb2", extra=_EXTRA).TensorProto,
            types=imported(f"{proto}.types_pb2", extra=_EXTRA),
            text=imported("tensorboard.plugins.text.metadata", extra=_EXTRA),
            writer=imported(
                "tensorboard.summary.writer.event_file_writer", extra=_EXTRA
            ).EventFileWriter,
        )


@attrs.frozen
class Events:
    """The event file of a run."""

    _library: EventLibrary
    _writer: Any

    @classmethod
    def begun(cls, library: EventLibrary, folder: Path) -> Events:
        """Begin a file in a folder, which is made if need be."""
        return cls(library, library.writer(str(folder)))

    def tell(self, report: Report, advance: Advance) -> None:
        """Write what is new."""
        for point in advance.points:
            self._add_scalars(
                {"violations": point.violations, "violations_so_far": point.so_far}, point.step
            )
        self._add_scalars(metrics_of(report.outcome.summary), advance.step)
        self._writer.flush()

    def end(self, report: Report) -> None:
        """Write the diagnosis, and close the file."""
        summary = report.outcome.summary
        last = max((each.last or 0 for each in summary.ranks), default=0)
        self._add_text("diagnosis", "\n\n".join(_told(report)), last)
        self._writer.close()

    def _add_scalars(self, values: Mapping[str, float], step: int) -> None:
        self._add(
            [
                self._library.summary.Value(tag=f"{_PREFIX}/{name}", simple_value=value)
                for name, value in values.items()
            ],
            step,
        )

    def _add_text(self, name: str, text: str, step: int) -> None:
        tensor = self._library.tensor(
            dtype=self._library.types.DT_STRING, string_val=[text.encode(errors="replace")]
        )
        value = self._library.summary.Value(
            tag=f"{_PREFIX}/{name}",
            tensor=tensor,
            metadata=self._library.text.create_summary_metadata(name, ""),
        )
        self._add([value], step)

    def _add(self, values: list[Any], step: int) -> None:
        summary = self._library.summary(value=values)
        self._writer.add_event(
            self._library.event(wall_time=time.time(), step=step, summary=summary)
        )


def _told(report: Report) -> Iterator[str]:
    """Yield paragraphs in Markdown: the verdict, and each group in words."""
    summary = report.outcome.summary
    yield _literal(verdict_line(report))
    yield from (_literal(f"incomplete: {each}") for each in summary.incomplete_because)
    yield from _groups(summary)


def _groups(summary: Summary) -> Iterator[str]:
    for group in summary.groups:
        yield f"### {group.id + 1}. {_literal(group.title)}"
        yield _literal(group.diagnosis)
        yield f"Look at: {_literal(group.look_at)}"


def _literal(text: str) -> str:
    """Escape what Markdown would take for its own."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+!|~" else c for c in text)
