"""Cuts of real files of TrainCheck 0.x, in `legacy/`, are read, migrated and valid afterwards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from traincheck_trace_schema.invariant_file import read_invariant_files
from traincheck_trace_schema.legacy import migrate
from traincheck_trace_schema.reading import Run, StreamItem, open_run
from traincheck_trace_schema.validation import validate

CUTS = Path(__file__).parent / "legacy"


def opened(folder: Path) -> tuple[Run, list[StreamItem]]:
    """Return a run and its records, each of which its schema accepts."""
    run = open_run([folder])
    items = [item for item in run.stream() if isinstance(item, StreamItem)]
    for item in items:
        validate("trace", item.record)
    return run, items


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("ddp-multigpu-cut", {"call_begin": 44, "call_end": 36, "var": 8, "gap": 2}),
        ("transformers-17877", {"call_begin": 35, "call_end": 35, "footer": 1}),
        ("mmpretrain-702", {"call_begin": 2, "call_end": 2, "footer": 1}),
    ],
)
def test_a_trace_is_read(name: str, kinds: dict[str, int]) -> None:
    """Calls and variables; a file that ends within a line leaves a gap and no footer."""
    _, items = opened(CUTS / name / "trace")

    counts = Counter(item.record["kind"] for item in items)

    told = ("call_begin", "call_end", "var", "gap", "footer")
    assert {kind: counts[kind] for kind in told if counts[kind]} == kinds


def test_ranks_that_left_no_trace_are_known() -> None:
    """The call of `init_process_group` tells the size of the world."""
    run, _ = opened(CUTS / "ddp-multigpu-cut" / "trace")

    assert "ranks 2, 3, 4, 5, 6, 7 of 8 left no trace" in run.incomplete_because()
    assert sum(":41: the last line is cut" in note for note in run.notes()) == 2


@pytest.mark.parametrize(
    ("name", "read", "left_out", "saying_less"),
    [
        ("invariants/lightning-thunder-725.json", 1, 0, 0),
        ("invariants/pytorch-115607.json", 2, 1, 0),
        ("invariants/sampled.json", 12, 4, 3),
        ("mmpretrain-702/invariants.json", 1, 0, 0),
        ("transformers-17877/invariants.json", 1, 0, 0),
    ],
)
def test_invariants_are_read_or_named(
    name: str, read: int, left_out: int, saying_less: int
) -> None:
    """What can't be expressed is counted, and so is what asks for less."""
    files = read_invariant_files([CUTS / name])

    assert (len(files.invariants), files.left_out, files.saying_less) == (
        read,
        left_out,
        saying_less,
    )


def test_the_whole_tree_is_migrated(tmp_path: Path) -> None:
    """Each trace reads as the old one, and each invariant stands under its old name."""
    migration = migrate(CUTS, tmp_path / "new")

    for name in ("ddp-multigpu-cut", "transformers-17877", "mmpretrain-702"):
        old, new = (opened(each / name / "trace")[1] for each in (CUTS, tmp_path / "new"))
        assert [item.record for item in new] == [item.record for item in old]
    for path in CUTS.rglob("*.json"):
        before, after = (
            read_invariant_files([each / path.relative_to(CUTS)])
            for each in (CUTS, tmp_path / "new")
        )
        assert before.invariants == after.invariants
    assert (migration.invariants, migration.left_out, migration.saying_less) == (17, 5, 3)
