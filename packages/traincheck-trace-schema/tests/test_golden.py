"""The golden files of version 1.0 leave nothing out, and stay readable for good."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import attrs
import jsonschema
import pytest

from traincheck_trace_schema.codec import loads, structure, structure_record, unstructure
from traincheck_trace_schema.invariant_file import read_invariants
from traincheck_trace_schema.invariants import Clause, Conjunction, Free, Invariant, Param
from traincheck_trace_schema.occasion import Place, Reference
from traincheck_trace_schema.plan import FunctionPlan, Plan, VariablePlan
from traincheck_trace_schema.plan_file import read_plan
from traincheck_trace_schema.progress import JudgedProcess, Progress
from traincheck_trace_schema.progress_file import read_progress
from traincheck_trace_schema.reading import StreamItem, open_run
from traincheck_trace_schema.records import (
    CallBegin,
    CallEnd,
    CallError,
    Footer,
    Gap,
    GapReason,
    Role,
    Stage,
    TraceRecord,
    VarEvent,
)
from traincheck_trace_schema.results import (
    RankProgress,
    Summary,
    Suppressed,
    Timeline,
    Verdict,
    Violation,
)
from traincheck_trace_schema.results_file import read_summary, read_verdicts
from traincheck_trace_schema.suppression_file import read_suppressions, suppression_path
from traincheck_trace_schema.suppressions import Suppression
from traincheck_trace_schema.validation import FileCheck, load_schema
from traincheck_trace_schema.values import PAYLOADS, TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parent / "golden" / "1.0"
TRACE = "trace_r0_p4242.json"
CLASSES: dict[str, tuple[str, Any]] = {
    TRACE: ("trace", TraceRecord),
    "invariants.json": ("invariants", Invariant),
    "plan.json": ("plan", Plan),
    "invariants.suppressed.jsonl": ("suppressions", Suppression),
    "progress.json": ("progress", Progress),
    "violations_summary.json": ("results", Summary),
    "failed.log": ("results", Verdict),
    "passed.log": ("results", Verdict),
    "not_triggered.log": ("results", Verdict),
}
each_file = pytest.mark.parametrize("name", CLASSES)


def _raw(name: str) -> list[dict[str, Any]]:
    text = (GOLDEN / name).read_text("utf-8")
    return [loads(text)] if text.startswith("{\n") else [loads(each) for each in text.splitlines()]


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in inner:
        yield from _nodes(each)


def _written(cls: type) -> set[str]:
    return {field.name.removesuffix("_") for field in attrs.fields(cls)}


def test_each_golden_file_is_known_to_the_tests() -> None:
    """None is forgotten below."""
    assert {path.name for path in GOLDEN.iterdir()} == set(CLASSES)


@each_file
def test_golden_files_are_valid(name: str) -> None:
    """Each file is valid, by its schema and by the rules beyond; another validator says so too."""
    check = FileCheck(GOLDEN / name)

    assert list(check.problems()) == []
    assert check.document == CLASSES[name][0]
    validator = jsonschema.Draft202012Validator(load_schema(check.document, "1.0"))
    assert all(map(validator.is_valid, _raw(name)))


@each_file
def test_golden_documents_are_read_and_written_as_they_were(name: str) -> None:
    """Nothing is lost between a document and its object."""
    for raw in _raw(name):
        made = structure_record(raw) if name == TRACE else structure(CLASSES[name][1], raw)
        assert unstructure(made) == raw


def test_the_golden_trace_leaves_no_kind_out_nor_any_field() -> None:
    """Each kind, each field of each kind, and each word that a field may be."""
    raws = _raw(TRACE)

    for cls in get_args(TraceRecord):
        own = [raw for raw in raws if raw["kind"] == cls.kind]
        placed = {"eval_pass", "eval_step", "micro_step"}
        assert not _written(cls) - placed - {key for raw in own for key in raw}, cls.kind
    told = {(key, value) for raw in raws for key, value in raw.items() if isinstance(value, str)}
    for field, words in (("event", VarEvent), ("reason", GapReason), ("stage", Stage)):
        assert {value for key, value in told if key == field} == set(get_args(words))
    assert {raw["role"] for raw in raws if raw["kind"] == "var"} == set(get_args(Role))


def test_the_golden_trace_leaves_no_encoding_of_a_value_out() -> None:
    """Each one-key object, and each field of a tensor."""
    nodes = [node for node in _nodes(_raw(TRACE)) if isinstance(node, dict)]

    assert {key for node in nodes if len(node) == 1 for key in node} >= PAYLOADS.keys()
    tensors = [node["tensor"] for node in nodes if "tensor" in node]
    assert {key for tensor in tensors for key in tensor} == _written(TensorValue)


def test_the_golden_invariants_leave_no_param_nor_clause_out() -> None:
    """Each type of param with each field, each type of clause, and what stands for none."""
    nodes = [node for node in _nodes(_raw("invariants.json")) if isinstance(node, dict)]

    for cls in get_args(Param):
        own = [node for node in nodes if node.get("param_type") == cls.param_type]
        assert not _written(cls) - {key for node in own for key in node}, cls.param_type
    assert {node["type"] for node in nodes if "prop_name" in node} == {
        "constant",
        "consistent",
        "unequal",
        "exist",
    }
    assert "Unconditional" in [node.get("clauses") for node in nodes]


def test_the_golden_results_leave_no_verdict_nor_any_field_out() -> None:
    """Each verdict and each field of the classes."""
    nodes = [node for name in CLASSES if CLASSES[name][0] == "results" for node in _raw(name)]
    keys = {key for node in _nodes(nodes) if isinstance(node, dict) for key in node}

    assert {node["verdict"] for node in nodes if "verdict" in node} == {
        "failed",
        "passed",
        "not_triggered",
    }
    told = (Verdict, Summary, Violation, Timeline, Place, Reference, RankProgress)
    assert set[str]().union(*map(_written, told)) <= keys


def test_the_golden_trace_says_what_it_said() -> None:
    """Its records are read into these objects."""
    run = open_run([GOLDEN / TRACE])
    raws = [item.record for item in run.stream() if isinstance(item, StreamItem)]
    records = [structure_record(raw) for raw in raws]
    header = run.shards[0].header
    ends = [record for record in records if isinstance(record, CallEnd)]
    begins = {each.id: each for each in records if isinstance(each, CallBegin)}

    assert (header.rank, header.world_size, header.restart, header.sampling.interval) == (
        0,
        2,
        1,
        10,
    )
    assert begins[6].parent == 5
    assert begins[6].args is not None
    assert begins[6].args["p"] == 0.1
    assert ends[0].result is None
    assert [each.exception for each in records if isinstance(each, CallError)] == ["ValueError"]
    assert [each.count for each in records if isinstance(each, Gap)] == [312, *[None] * 5]
    assert isinstance(records[-1], Footer)
    assert records[-1].seconds == 12.5


def test_the_golden_invariants_say_what_they_said() -> None:
    """They are read into these objects."""
    first, second, third, _ = read_invariants([GOLDEN / "invariants.json"])

    assert first.num_positive_examples == 412
    assert (first.likelihood, second.likelihood) == (0.9, None)
    assert first.precondition["variable"].preconditions[0].clauses[1:] == (
        Clause(type="exist", prop_name="call.arg.closure"),
    )
    assert second.precondition["variable"].preconditions == (Conjunction(clauses="Unconditional"),)
    assert getattr(third.params[1], "const_value", Free.ANY) == {"dtype": "float16"}


def test_the_golden_plan_says_what_it_said() -> None:
    """It is read into this object."""
    assert read_plan(GOLDEN / "plan.json") == Plan(
        id="5f0c9ad1b3e27746",
        functions=(
            FunctionPlan(
                name="torch.nn.functional.dropout", arguments=("p", "training"), result=True
            ),
            FunctionPlan(name="torch.optim.Optimizer.step", arguments="all"),
            FunctionPlan(name="torch.optim.Optimizer.zero_grad"),
        ),
        variables=(VariablePlan(role="parameter", attributes=("data", "grad")),),
        observe=("torch.optim.Optimizer.step",),
        observe_before=("torch.optim.Optimizer.zero_grad",),
        observe_after=("torch.nn.functional.dropout",),
        contexts=("autocast", "grad_mode"),
    )


def test_the_golden_results_say_what_they_said() -> None:
    """They are read into these objects."""
    summary = read_summary(GOLDEN / "violations_summary.json")
    (failed,) = read_verdicts(GOLDEN / "failed.log")
    (silent,) = read_verdicts(GOLDEN / "not_triggered.log")

    assert (summary.checked, summary.failed, summary.complete) == (120, 1, False)
    assert summary.violations[0].first.source == "train.py:57"
    assert summary.groups[0].invariant_ids == (failed.invariant_id,)
    assert failed.evidence[0].record["kind"] == "call_end"
    assert silent.reason == "the run has one rank"
    assert summary.suppressions == (
        Suppressed(
            pattern="torch.nn.functional.*",
            reason="the model of this year returns half precision",
            invariant_ids=("bed6e37743655665",),
        ),
    )


def test_the_golden_suppressions_say_what_they_said() -> None:
    """They are read into these objects, from where they stand beside the invariants."""
    assert read_suppressions(suppression_path(GOLDEN / "invariants.json")) == [
        Suppression(pattern="aa28d915182ef6f4", reason="the head is frozen on purpose"),
        Suppression(
            pattern="torch.nn.functional.*", reason="the model of this year returns half precision"
        ),
    ]


def test_the_golden_progress_leaves_no_field_out() -> None:
    """It is read into these objects."""
    progress = read_progress(GOLDEN / "progress.json")

    assert _written(Progress) == _raw("progress.json")[0].keys()
    assert (progress.violations, progress.fails, progress.awaited) == (3, True, (1,))
    assert progress.processes[1] == JudgedProcess(
        shard="trace_r1_p4243.json", rank=1, restart=1, size=28110, seq=91, step=11, ended=True
    )
