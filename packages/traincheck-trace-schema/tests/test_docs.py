"""What the documentation shows is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from traincheck_trace_schema.codec import dumps, loads, structure_record
from traincheck_trace_schema.invariant_file import invariant_id, read_invariants
from traincheck_trace_schema.plan_file import read_plan
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.summary import summarise
from traincheck_trace_schema.validation import FileCheck, validate
from traincheck_trace_schema.values import PAYLOADS

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE = Path(__file__).parents[1]
DOCS = PACKAGE / "docs"
PAGE = (DOCS / "trace.md").read_text("utf-8")


def _blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def _problems(path: Path) -> Sequence[str]:
    return [problem.what for problem in FileCheck(path).problems()]


def test_each_kind_of_record_has_a_valid_example() -> None:
    """The examples of the page validate, can be read, and leave no kind out."""
    records = [loads(line) for block in _blocks("trace.md", "json") for line in block.splitlines()]

    for record in records:
        validate("trace", record)
        structure_record(record)

    assert {record["kind"] for record in records} == {cls.kind for cls in get_args(TraceRecord)}


def test_each_encoding_of_a_value_has_a_valid_example() -> None:
    """The table of values shows what the schema accepts, and leaves no encoding out."""
    _, _, section = PAGE.partition("## Values")
    values = [loads(text) for text in re.findall(r"`(\{.*?\})`", section)]

    for value in values:
        validate(
            "trace",
            {"kind": "call_end", "thread": 1, "seq": 1, "step": 0, "id": 1, "function": "f"}
            | {"result": value},
        )

    assert {key for value in values for key in value} == PAYLOADS.keys()


def test_the_complete_shard_is_valid_and_says_what_the_page_says(tmp_path: Path) -> None:
    """Two steps, of which the first changes the weight; nothing is missing."""
    path = tmp_path / "trace_r0.json"
    (shard,) = _blocks("trace.md", "jsonl")
    path.write_text(shard)

    assert _problems(path) == []
    summary = summarise(open_run([tmp_path], strict=True))
    assert summary.processes[0].steps.count == 2
    assert summary.variables["model.weight"].changes == 1
    assert summary.incomplete_because == ()


def test_the_invariant_is_valid_and_its_id_is_explained(tmp_path: Path) -> None:
    """The file of the page can be read, and its id is the one that the page describes."""
    path = tmp_path / "invariants.json"
    path.write_text(*_blocks("invariants.md", "jsonl"))

    assert _problems(path) == []
    (invariant,) = read_invariants([path])
    own = invariant_id(invariant.relation, invariant.params, invariant.precondition)
    assert invariant.id == own == _described_id(loads(path.read_text()))


def _described_id(raw: dict[str, Any]) -> str:
    import hashlib  # noqa: PLC0415  as in another program
    import json  # noqa: PLC0415

    def sort_lists(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sort_lists(item) for key, item in value.items()}
        return sorted(map(sort_lists, value), key=dumps) if isinstance(value, list) else value

    content = [raw["relation"], raw["params"], sort_lists(raw["precondition"])]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def test_the_plan_is_valid(tmp_path: Path) -> None:
    """The file of the page can be read."""
    path = tmp_path / "plan.json"
    path.write_text(*_blocks("plan.md", "json"))

    assert _problems(path) == []
    assert read_plan(path).observe == ("torch.optim.Optimizer.step",)


def test_the_results_are_valid(tmp_path: Path) -> None:
    """The files of the page can be read, and their totals fit."""
    summary, verdicts = tmp_path / "violations_summary.json", tmp_path / "failed.log"
    summary.write_text(*_blocks("results.md", "json"))
    verdicts.write_text(*_blocks("results.md", "jsonl"))

    assert _problems(summary) == _problems(verdicts) == []
    assert read_summary(summary).checked == len(read_verdicts(verdicts)) == 3


@pytest.mark.parametrize("page", [PACKAGE / "README.md", *sorted(DOCS.glob("*.md"))], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """Each file that a page links is there."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []
