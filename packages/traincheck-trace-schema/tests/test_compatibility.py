"""A reader of 1.0 reads every 1.x, and refuses another major version by a message that helps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import attrs
import pytest

from traincheck_trace_schema.codec import dumps, loads, structure_record
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.invariant_file import read_invariants
from traincheck_trace_schema.invariants import Invariant
from traincheck_trace_schema.plan import Plan
from traincheck_trace_schema.plan_file import read_plan
from traincheck_trace_schema.progress import Progress
from traincheck_trace_schema.progress_file import read_progress
from traincheck_trace_schema.reading import StreamItem, open_run
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.results import Summary, Verdict
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.suppression_file import read_suppressions
from traincheck_trace_schema.suppressions import Suppression
from traincheck_trace_schema.validation import FileCheck
from traincheck_trace_schema.values import PAYLOADS, Encoded
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden" / "1.0"
FUTURE = {"mood": {"level": [1, None]}}
NEW_KIND = {"kind": "mood", "thread": 1, "seq": 0, "step": -1, "event": 7}


def _read_records(path: Path) -> list[TraceRecord]:
    items = [
        item for item in open_run([path], strict=True).stream() if isinstance(item, StreamItem)
    ]
    known = {cls.kind for cls in get_args(TraceRecord)}
    return [structure_record(item.record) for item in items if item.record["kind"] in known]


READERS: dict[str, tuple[Any, Callable[[Path], Any]]] = {
    "trace_r0_p4242.json": (TraceRecord, _read_records),
    "invariants.json": (Invariant, lambda path: read_invariants([path])),
    "plan.json": (Plan, read_plan),
    "violations_summary.json": (Summary, read_summary),
    "failed.log": (Verdict, read_verdicts),
    "invariants.suppressed.jsonl": (Suppression, read_suppressions),
    "progress.json": (Progress, read_progress),
}
each_document = pytest.mark.parametrize("name", READERS)


def _extended(hint: Any, raw: Any) -> Any:
    """Add a field at every level that has fields."""
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated and Encoded() in members:
        return _extended_value(raw)
    if origin is Annotated:
        return _extended(members[0], raw)
    if attrs.has(hint) and isinstance(raw, dict):
        hints = get_type_hints(hint, include_extras=True)
        written = {name.removesuffix("_"): each for name, each in hints.items()}
        return {key: _extended(written.get(key), value) for key, value in raw.items()} | FUTURE
    if origin is Mapping and isinstance(raw, dict):
        return {key: _extended(members[1], value) for key, value in raw.items()}
    if origin is tuple and isinstance(raw, list):
        return [_extended(members[0], value) for value in raw]
    for member in _meant(members, raw):
        raw = _extended(member, raw)
    return raw


def _meant(members: tuple[Any, ...], raw: Any) -> tuple[Any, ...]:
    """Return the class of a union that a tag names, else all members."""
    for tag in ("kind", "param_type"):
        if isinstance(raw, dict) and tag in raw:
            return tuple(cls for cls in members if getattr(cls, tag, None) == raw[tag])
    return members


def _extended_value(raw: Any) -> Any:
    if isinstance(raw, list):
        return [_extended_value(value) for value in raw]
    if isinstance(raw, dict):
        return {key: _extended(PAYLOADS[key], payload) for key, payload in raw.items()}
    return raw


def _newer(name: str, tmp_path: Path) -> Path:
    """Write a golden document as a version 1.1 would have it."""
    text = (GOLDEN / name).read_text("utf-8")
    raws = [loads(text)] if text.startswith("{\n") else [loads(each) for each in text.splitlines()]
    newer = [_extended(READERS[name][0], raw) for raw in raws]
    for raw in newer:
        if "version" in raw:
            raw["version"] = "1.1"
    if name.startswith("trace"):
        newer.insert(1, NEW_KIND)
        newer[-1]["records"] |= {"mood": 1}
    path = tmp_path / name
    path.write_text("".join(f"{dumps(raw)}\n" for raw in newer))
    return path


def _as_of_1_1(document: Any) -> Any:
    return attrs.evolve(document, version="1.1") if hasattr(document, "version") else document


@each_document
def test_a_newer_minor_version_says_what_it_said(name: str, tmp_path: Path) -> None:
    """A field that is added at every level, and a kind that is unknown, disturb nobody."""
    _, read = READERS[name]
    path = _newer(name, tmp_path)

    newer, known = read(path), read(GOLDEN / name)

    if isinstance(known, list):
        assert [*map(_without_values, newer)] == [*map(_without_values, map(_as_of_1_1, known))]
    else:
        assert newer == _as_of_1_1(known)


def _without_values(document: Any) -> dict[str, Any]:
    """Return its fields but those with raw values, which keep what was added to them."""
    raw = {"args", "attributes", "self_", "ctx", "result", "params", "evidence", "records"}
    return {
        field.name: getattr(document, field.name)
        for field in attrs.fields(type(document))
        if field.name not in raw
    }


@each_document
def test_a_newer_minor_version_is_valid(name: str, tmp_path: Path) -> None:
    """Validating it passes what is not known here, and says so."""
    check = FileCheck(_newer(name, tmp_path))

    assert list(check.problems()) == []
    assert check.notes == ["is version 1.1: what is not in 1.0 is passed"]


@each_document
@pytest.mark.parametrize(
    ("version", "help_"),
    [
        ("2.0", "update TrainCheck to read it: pip install --upgrade traincheck-trace-schema"),
        ("0.9", "migrate it with: traincheck-schema migrate IN OUT"),
    ],
)
def test_another_major_version_is_refused(
    name: str, version: str, help_: str, tmp_path: Path
) -> None:
    """The message says what was read, what is known, and the command that helps."""
    _, read = READERS[name]
    path = tmp_path / name
    text = (GOLDEN / name).read_text("utf-8")
    path.write_text(
        text.replace('"version": "1.0"', '"version":"1.0"').replace(
            '"version":"1.0"', f'"version":"{version}"'
        )
    )

    with pytest.raises(TraincheckError) as caught:
        read(path)
    (problem,) = FileCheck(path).problems()

    for message in (str(caught.value), problem.what):
        assert f"version {version}, and this TrainCheck knows version 1.x; " in message
        assert help_ in message


@pytest.mark.parametrize("version", [None, 1.0, "1", "1.x", "v1.0", "1.0.0", "9" * 20 + ".0"])
def test_a_version_has_a_form(version: object) -> None:
    """Two numbers and a dot, in a text."""
    with pytest.raises(TraincheckError, match=r"'version' must be a text like '1\.0', got"):
        check_version(
            {"schema": "s", "version": version},
            schema="s",
            known="1.0",
            where="x",
            error=TraincheckError,
        )
