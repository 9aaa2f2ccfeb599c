"""Real files of TrainCheck 0.x, from the public evaluation workloads, are read and migrated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traincheck_trace_schema.invariant_file import read_invariant_files
from traincheck_trace_schema.legacy import migrate
from traincheck_trace_schema.reading import Run, StreamItem, open_run
from traincheck_trace_schema.validation import validate

LEGACY = Path(__file__).parents[3].parent / "shared" / "legacy"

pytestmark = pytest.mark.skipif(
    not LEGACY.is_dir() and not os.environ.get("CI"), reason="the old files are not at hand"
)


def opened(name: str) -> tuple[Run, list[StreamItem]]:
    """Return a run and its records, each of which its schema accepts."""
    run = open_run([LEGACY / name / "trace"])
    items = [item for item in run.stream() if isinstance(item, StreamItem)]
    for item in items:
        validate("trace", item.record)
    return run, items


def test_a_trace_that_was_cut_is_read_up_to_there() -> None:
    """Two ranks of eight, whose files of calls end within a line."""
    run, items = opened("ddp-multigpu-cut")

    assert [shard.header.rank for shard in run.shards] == [0, 1]
    cut = [note for note in run.notes() if "the last line is cut" in note]
    assert [Path(note.partition(":703:")[0]).name for note in cut] == [
        "trace_API_1858805_140660446906176.log",
        "trace_API_1858806_140658394089280.log",
    ]
    reasons = run.incomplete_because()
    assert sum("did not end cleanly" in reason for reason in reasons) == 2
    assert "ranks 2, 3, 4, 5, 6, 7 of 8 left no trace" in reasons
    steps = [item.record["step"] for item in items if item.record["kind"] == "step"]
    assert sorted(set(steps)) == [0, 1, 2, 3]


def test_a_real_trace_of_calls_is_read_whole() -> None:
    """Every call has its end, and nests; nothing is left out."""
    run, items = opened("transformers-17877")

    kinds = [item.record["kind"] for item in items]
    assert kinds.count("call_begin") == kinds.count("call_end") == 3921
    assert run.incomplete_because() == ()
    begins = {
        item.record["id"]: item.record for item in items if item.record["kind"] == "call_begin"
    }
    fills = [one for one in begins.values() if one["function"] == "torch.Tensor.normal_"]
    assert len(fills) == 196
    around = {begins[one["parent"]]["function"] for one in fills if one["parent"] is not None}
    assert "torch.nn.init._no_grad_normal_" in around


def test_a_trace_that_was_made_by_hand_is_read() -> None:
    """Its last line has no end, and its name no process."""
    run, items = opened("mmpretrain-702")

    calls = [item.record["function"] for item in items if item.record["kind"] == "call_begin"]
    assert calls == ["torch.nn.Module.train", "torch.nn.Module.eval"]
    assert run.incomplete_because() == ()


@pytest.mark.parametrize(
    ("name", "read", "left_out"),
    [
        ("mmpretrain-702/invariants.json", 1, []),
        ("transformers-17877/invariants.json", 1, []),
        ("invariants/lightning-thunder-725.json", 1, []),
        ("invariants/pytorch-115607.json", 2, ["pytorch-115607.json:3: "]),
        (
            "invariants/sampled_100_invariants.json",
            96,
            [f"sampled_100_invariants.json:{number}: " for number in range(90, 94)],
        ),
        ("invariants/transformers-33844.json", 1, []),
        ("invariants/transformers-34204.json", 71, []),
    ],
)
def test_all_invariant_files_are_read(name: str, read: int, left_out: list[str]) -> None:
    """What can't be expressed is named by file and line."""
    files = read_invariant_files([LEGACY / name])

    notes = [note for note in files.notes if "left out" in note]
    assert len(files.invariants) == read
    assert len(notes) == len(left_out)
    assert all(place in note for place, note in zip(left_out, notes, strict=True))


@pytest.mark.parametrize(
    "name", ["ddp-multigpu-cut", "mmpretrain-702", "transformers-17877", "invariants"]
)
def test_each_folder_can_be_migrated(tmp_path: Path, name: str) -> None:
    """Traces and invariants, under the same relative names."""
    migrate(LEGACY / name, tmp_path / "new")

    if (LEGACY / name / "trace").is_dir():
        old, new = (open_run([each / "trace"]) for each in (LEGACY / name, tmp_path / "new"))
        records = [
            [item.record for item in run.stream() if isinstance(item, StreamItem)]
            for run in (old, new)
        ]
        assert records[0] == records[1]
