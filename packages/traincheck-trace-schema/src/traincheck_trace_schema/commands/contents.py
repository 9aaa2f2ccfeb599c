"""Which of the screens of `traincheck-schema show` a path gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_trace_schema.commands.document_screen import (
    invariant_lines,
    plan_lines,
    progress_lines,
    summary_lines,
    suppression_lines,
    verdict_lines,
)
from traincheck_trace_schema.commands.trace_screen import trace_lines
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.legacy.detection import is_legacy_file
from traincheck_trace_schema.reading import open_runs
from traincheck_trace_schema.summary import summarise
from traincheck_trace_schema.validation.folder import NAMES, SHARDS, documents_in, is_named_as
from traincheck_trace_schema.validation.recognition import recognise
from traincheck_trace_schema.validation.text import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from traincheck_trace_schema.commands.screen import Screen


def screens(paths: Sequence[Path], screen: Screen, *, is_strict: bool) -> Iterator[Iterator[str]]:
    """Yield the lines about each run, then those about each other document.

    Raises:
        TraincheckError: a path is not there, or cannot be read as the document that it is.
    """
    traces: dict[Path, None] = {}  # files, and folders of shards
    documents: list[Iterator[str]] = []
    for given in paths:
        for path, is_ours_if_it_says_so in documents_in([given]):
            if path.parent in traces:
                continue  # what lies beside shards belongs to them
            if path != given and is_named_as(path, *SHARDS):
                traces[path.parent] = None
            elif _is_trace(path):
                traces[path] = None
            elif (lines := _document_lines(path, screen)) is not None:
                documents.append(lines)
            elif not is_ours_if_it_says_so:
                raise ConfigError(f"{path}: is no document of TrainCheck; {NAMES}")
    if traces:
        for run in open_runs([*traces], strict=is_strict):
            yield trace_lines(summarise(run), screen)
    yield from documents


def _is_trace(path: Path) -> bool:
    first = next(iter(Lines(path)), None)
    is_ours = first is not None and recognise(path, first).document == "trace"
    return is_ours or is_legacy_file(path)


def _document_lines(path: Path, screen: Screen) -> Iterator[str] | None:
    """Return what there is to tell of a file; None if it is no document of ours."""
    first = next(iter(Lines(path)), None)
    if first is None:
        return iter([f"{path}: empty"])
    found = recognise(path, first)
    if found.document == "results":
        return verdict_lines(path, screen) if found.whole is None else summary_lines(path, screen)
    lines_of = _LINES.get(found.document)
    return None if lines_of is None else lines_of(path, screen)


_LINES: Mapping[str, Callable[[Path, Screen], Iterator[str]]] = {
    "invariants": invariant_lines,
    "plan": plan_lines,
    "suppressions": suppression_lines,
    "progress": progress_lines,
}
