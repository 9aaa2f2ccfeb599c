"""What TrainCheck 0.x wrote can be written anew as version 1.0."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.invariant_file import read_invariant_files, read_invariants
from traincheck_trace_schema.legacy import is_legacy_file, migrate
from traincheck_trace_schema.legacy.testing import OldTrace
from traincheck_trace_schema.reading import Run, StreamItem, open_run

if TYPE_CHECKING:
    from pathlib import Path

OLD_INVARIANT = {
    "text_description": "TBD merged",
    "relation": "APIContainRelation",
    "params": [{"param_type": "APIParam", "api_full_name": name} for name in ("f", "g")],
    "precondition": {},
}


def write_old_trace(folder: Path) -> Path:
    """Write a trace of two ranks and a worker, with a gap of sampling."""
    trace = OldTrace(folder)
    for pid in (7, 8):
        thread = trace.thread(pid)
        thread.at(stage="training", _DATA_PARALLEL_RANK=pid - 7)
        for step in (1, 2, 9):
            thread.at(step=step)
            with thread.call("torch.optim.sgd.SGD.step", {"1": {"float": None}}):
                thread.state("w", data=step, grad=[1.5, None])
    with trace.thread(9).call("f"):
        pass
    return trace.write()


def write_old_invariants(path: Path, *lines: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines or [OLD_INVARIANT]))
    return path


def stream(run: Run) -> list[Any]:
    """Return what a run's stream says, without the lines of files."""
    return [
        (item.process, item.record, item.window) if isinstance(item, StreamItem) else item
        for item in run.stream()
    ]


def test_a_migrated_trace_reads_as_the_old_one(tmp_path: Path) -> None:
    """The same records in the same order and windows, from one shard a process."""
    old = write_old_trace(tmp_path / "old")

    migration = migrate(old, tmp_path / "new")

    assert [path.name for path in migration.written] == [
        "trace_r0_p7.json",
        "trace_r0_p9.json",
        "trace_r1_p8.json",
    ]
    assert not any(map(is_legacy_file, migration.written))
    before, after = open_run([old]), open_run([tmp_path / "new"])
    assert stream(before) == stream(after)
    assert before.run_id == after.run_id
    assert before.incomplete_because() == after.incomplete_because() == ()


def test_a_single_file_becomes_a_folder(tmp_path: Path) -> None:
    """It is the trace of what it holds."""
    old = write_old_trace(tmp_path / "old")

    migration = migrate(old / "trace_API_9_70.log", tmp_path / "new")

    assert migration.written == (tmp_path / "new" / "trace_r0_p9.json",)


def test_what_is_cut_is_told_and_stays_incomplete(tmp_path: Path) -> None:
    """There is no footer in the new shard either."""
    old = write_old_trace(tmp_path / "old")
    api = old / "trace_API_7_70.log"
    api.write_bytes(api.read_bytes()[:-9])

    migration = migrate(old, tmp_path / "new")

    assert any(f"{api}:6: the last line is cut" in note for note in migration.notes)
    run = open_run([tmp_path / "new"])
    list(run.stream())
    assert len(run.incomplete_because()) == 1


def test_an_invariant_file_becomes_one(tmp_path: Path) -> None:
    """What can't be expressed is told."""
    lost = OLD_INVARIANT | {"params": [{"param_type": "MoodParam"}]}
    old = write_old_invariants(tmp_path / "old.json", OLD_INVARIANT, lost)

    migration = migrate(old, tmp_path / "new.json")

    assert migration.written == (tmp_path / "new.json",)
    assert "old.json:2: left out" in migration.notes[0]
    assert read_invariants([tmp_path / "new.json"]) == read_invariants([old])
    assert read_invariant_files([tmp_path / "new.json"]).notes == ()


def test_a_folder_of_both_keeps_its_names(tmp_path: Path) -> None:
    """A trace in a folder of its own, and invariants beside it; what is neither is left alone."""
    write_old_trace(tmp_path / "old" / "trace")
    write_old_invariants(tmp_path / "old" / "invariants.json")
    (tmp_path / "old" / "notes.txt").write_text("mine")

    migrate(tmp_path / "old", tmp_path / "new")

    names = [str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.*")]
    assert sorted(names) == [
        "invariants.json",
        "trace/trace_r0_p7.json",
        "trace/trace_r0_p9.json",
        "trace/trace_r1_p8.json",
    ]


def test_what_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    """Not a file, not an empty folder, not a link that leads nowhere."""
    old = write_old_invariants(tmp_path / "old.json")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    for name in ("file", "folder", "link"):
        with pytest.raises(TraincheckError, match=f"{name}: is there already; choose another"):
            migrate(old, tmp_path / name)

    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_what_is_of_version_1_already_is_refused(tmp_path: Path) -> None:
    """A trace folder, a shard and an invariant file."""
    migrate(write_old_trace(tmp_path / "old"), tmp_path / "new")
    migrate(write_old_invariants(tmp_path / "old.json"), tmp_path / "new.json")

    for name in ("new", "new/trace_r0_p7.json", "new.json"):
        with pytest.raises(TraincheckError, match=f"{name}: is of version 1.0 already"):
            migrate(tmp_path / name, tmp_path / "again")


@pytest.mark.parametrize("name", ["empty", "file.txt", "missing", "loop"])
def test_what_holds_nothing_old_is_refused(tmp_path: Path, name: str) -> None:
    """An empty folder, another file, none at all, a loop of links."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("hello")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(TraincheckError, match=f"{name}: holds nothing that TrainCheck 0.x wrote"):
        migrate(tmp_path / name, tmp_path / "new")


@pytest.mark.parametrize("name", ["both", "broken.json"])
def test_nothing_half_written_is_left(tmp_path: Path, name: str) -> None:
    """If one file can't be migrated, none is."""
    write_old_trace(tmp_path / "both" / "trace")
    write_old_invariants(tmp_path / "both" / "z.json", OLD_INVARIANT, {"relation": "R"})
    write_old_invariants(tmp_path / "broken.json", OLD_INVARIANT, [])

    with pytest.raises(TraincheckError):
        migrate(tmp_path / name, tmp_path / "new")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "broken.json"]


def test_a_file_of_which_nothing_can_be_expressed_is_refused(tmp_path: Path) -> None:
    """With the reason of the first."""
    lost = OLD_INVARIANT | {"params": [{"param_type": "MoodParam"}]}
    old = write_old_invariants(tmp_path / "old.json", lost)

    with pytest.raises(TraincheckError, match=r"no invariant can be expressed: .*MoodParam"):
        migrate(old, tmp_path / "new.json")


def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    """One line says which, and why."""
    old = write_old_trace(tmp_path / "old")

    with pytest.raises(TraincheckError, match="new: cannot be written: No such file"):
        migrate(old, tmp_path / "missing" / "new")
