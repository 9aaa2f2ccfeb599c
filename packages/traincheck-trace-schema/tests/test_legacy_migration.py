"""What TrainCheck 0.x wrote can be written anew as version 1.0."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from traincheck_trace_schema.commands.migrate import migrate as command
from traincheck_trace_schema.errors import TraincheckError
from traincheck_trace_schema.invariant_file import read_invariant_files, read_invariants
from traincheck_trace_schema.legacy import is_legacy_file, migrate
from traincheck_trace_schema.legacy.testing import OldTrace
from traincheck_trace_schema.reading import Run, StreamItem, open_run

OLD_INVARIANT: dict[str, Any] = {
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
    assert run.incomplete_because() == (
        "trace_r0_p7.json: rank 0 did not end cleanly, there is no footer",
        "trace_r0_p7.json: at least 1 record was lost (disk)",
    )


def test_a_worker_that_was_killed_leaves_the_run_complete(tmp_path: Path) -> None:
    """As in version 1.0: it is told, before and after."""
    old = write_old_trace(tmp_path / "old")
    api = old / "trace_API_9_70.log"
    api.write_bytes(api.read_bytes()[:-9])

    migrate(old, tmp_path / "new")

    for run in (open_run([old]), open_run([tmp_path / "new"])):
        list(run.stream())
        assert run.incomplete_because() == ()


def test_lines_that_are_no_records_are_lost_after_migration_too(tmp_path: Path) -> None:
    """In their place stands a gap, in what is read of the old files and in the new ones."""
    old = write_old_trace(tmp_path / "old")
    api = old / "trace_API_7_70.log"
    first, *others = api.read_bytes().splitlines(keepends=True)
    api.write_bytes(first + b"garbage\nmore\n" + b"".join(others))
    before = open_run([old])
    records = stream(before)

    migrate(old, tmp_path / "new")

    after = open_run([tmp_path / "new"])
    assert stream(after) == records
    (gap,) = (
        each[1]
        for each in records
        if isinstance(each, tuple) and "detail" in each[1] and each[1]["reason"] == "encoding"
    )
    assert (gap["count"], gap["detail"]) == (2, f"{api.name}: lines that are no records")
    assert before.incomplete_because() == (f"{api.name}: lines that are no records: 2",)
    assert after.incomplete_because() == (
        "trace_r0_p7.json: at least 2 records were lost (encoding)",
    )


def test_a_file_that_was_given_up_is_lost_after_migration_too(tmp_path: Path) -> None:
    """Compressed data that is damaged ends it."""
    old = OldTrace(tmp_path / "old")
    with old.thread().call("f"):
        pass
    old.write(compressed=True)
    (api,) = old.folder.iterdir()
    api.write_bytes(api.read_bytes() + b"\x1f\x8b\x08" + b"no gzip" * 9)

    migrate(old.folder, tmp_path / "new")

    for folder in (old.folder, tmp_path / "new"):
        run = open_run([folder])
        list(run.stream())
        assert run.incomplete_because()


def test_that_a_trace_is_of_0_x_is_told_of_the_migrated_one(tmp_path: Path) -> None:
    """Once a folder: of what is not judged, nothing has changed."""
    migrate(write_old_trace(tmp_path / "old"), tmp_path / "new")

    run = open_run([tmp_path / "new"])
    list(run.stream())

    (note,) = run.notes()
    assert note.startswith(f"{tmp_path / 'new'}: is a trace of TrainCheck 0.x, which did not look")


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

    migration = migrate(tmp_path / "old", tmp_path / "new")

    names = [str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.*")]
    assert sorted(names) == [
        "invariants.json",
        "trace/trace_r0_p7.json",
        "trace/trace_r0_p9.json",
        "trace/trace_r1_p8.json",
    ]
    assert migration.files_left == 0


def test_a_tree_is_migrated_at_any_depth(tmp_path: Path) -> None:
    """Two folders of one name are two; a link to a folder is told, and not followed."""
    old = tmp_path / "old"
    for name in ("a/run/trace", "b/deep/er/trace"):
        (old / name).mkdir(parents=True)
        write_old_trace(old / name)
    (old / "a" / "b").symlink_to(old / "b")
    (old / "a" / "up").symlink_to(old)

    migration = migrate(old, tmp_path / "new")

    assert [str(path.parent.relative_to(tmp_path / "new")) for path in migration.written] == [
        *["a/run/trace"] * 3,
        *["b/deep/er/trace"] * 3,
    ]
    assert f"{old / 'a' / 'up'}: is a link to a folder; left where it is" in migration.notes


def test_a_target_within_the_source_is_no_part_of_it(tmp_path: Path) -> None:
    """What is being written is not taken for what is there."""
    old = write_old_trace(tmp_path / "old")

    migration = migrate(old, old / "new")

    assert len(migration.written) == 3
    assert migration.files_left == 0


def test_files_that_are_not_carried_over_are_told(tmp_path: Path) -> None:
    """Of 1.0 in any form, results of 0.x, and what is named as a trace and is none."""
    old = write_old_trace(tmp_path / "old")
    migrate(write_old_trace(tmp_path / "other"), tmp_path / "of1")
    shard = (tmp_path / "of1" / "trace_r0_p7.json").read_bytes()
    for name, content in (
        ("trace_r0_p1.json", shard),
        ("trace_r0_p2.json.gz", gzip.compress(shard)),
        ("plan.json", b'{\n  "schema": "traincheck.plan",\n  "version": "1.0"\n}\n'),
        ("invariants.json.failed", b'{"failed_reason": "Precondition not found"}\n'),
        ("failed.log", b'{\n    "invariant": {\n'),
        ("trace_x.json", b"garbage"),
        ("mine.json", b'{"a": 1}\n'),
    ):
        (old / name).write_bytes(content)

    migration = migrate(old, tmp_path / "new")

    result = "is a result of TrainCheck 0.x, which version 1.0 does not have"
    left = dict.fromkeys(
        ("plan.json", "trace_r0_p1.json", "trace_r0_p2.json.gz"), "is of version 1.0 already"
    )
    left |= dict.fromkeys(("failed.log", "invariants.json.failed"), result)
    left |= {"trace_x.json": "is no trace that can be read"}
    told = [note for note in migration.notes if note.endswith("left where it is")]
    assert sorted(told) == sorted(
        f"{old / name}: {why}; left where it is" for name, why in left.items()
    )
    assert migration.files_left == len(left)


def test_one_file_does_not_keep_the_others_from_being_migrated(tmp_path: Path) -> None:
    """A line that is broken, nothing that can be expressed, a trace without a record."""
    old = tmp_path / "old"
    write_old_trace(old / "good")
    lost = OLD_INVARIANT | {"params": [{"param_type": "MoodParam"}]}
    write_old_invariants(old / "broken.json", OLD_INVARIANT, {"relation": "R"})
    write_old_invariants(old / "lost.json", lost)
    write_old_invariants(old / "right.json")
    (old / "bad").mkdir()
    (old / "bad" / "trace_API_1_1.log").write_text('{"process_id":3,"type":"state_change"}\n')
    (old / "empty").mkdir()
    (old / "empty" / "trace_API_1_1.log").touch()

    migration = migrate(old, tmp_path / "new")

    assert len(migration.written) == 4
    for start in (
        f"{old / 'broken.json'}:2: field 'params' is missing",
        f"{old / 'lost.json'}: no invariant can be expressed: ",
        f"{old / 'bad' / 'trace_API_1_1.log'}:1: is no record of TrainCheck 0.x",
        f"{old / 'empty' / 'trace_API_1_1.log'}: has no records",
    ):
        assert any(note.startswith(start) for note in migration.notes), start
    assert migration.files_left == 4
    assert not (tmp_path / "new" / "bad").exists()


def test_a_folder_that_can_not_be_read_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no fault of the target's."""
    old = write_old_trace(tmp_path / "old")
    (old / "closed").mkdir()
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name == "closed":  # whoever may read all is not refused by its mode
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)

    migration = migrate(old, tmp_path / "new")

    assert f"{old / 'closed'}: cannot be read: Permission denied; left where it is" in (
        migration.notes
    )


def test_invariants_of_a_compressed_file_are_compressed(tmp_path: Path) -> None:
    """The name of what is written says what it is."""
    old = write_old_invariants(tmp_path / "old.json")
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "i.json.gz").write_bytes(gzip.compress(old.read_bytes()))

    migrate(packed, tmp_path / "new")

    assert gzip.decompress((tmp_path / "new" / "i.json.gz").read_bytes())
    assert read_invariants([tmp_path / "new" / "i.json.gz"]) == read_invariants([old])


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

    for name, told in (
        ("new", "new/trace_r0_p7.json"),
        ("new/trace_r0_p7.json", "new/trace_r0_p7.json"),
        ("new.json", "new.json"),
    ):
        with pytest.raises(TraincheckError, match=f"{told}: is of version 1.0 already; there is"):
            migrate(tmp_path / name, tmp_path / "again")


@pytest.mark.parametrize("name", ["empty", "file.txt", "missing", "loop"])
def test_what_holds_nothing_old_is_refused(tmp_path: Path, name: str) -> None:
    """An empty folder, another file, none at all, a loop of links."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("hello")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(TraincheckError, match=f"{name}: holds nothing that TrainCheck 0.x wrote"):
        migrate(tmp_path / name, tmp_path / "new")


@pytest.mark.parametrize("name", ["folder", "folder/z.json"])
def test_nothing_half_written_is_left(tmp_path: Path, name: str) -> None:
    """If nothing can be migrated, there is no target; the reason is that of the first."""
    write_old_invariants(tmp_path / "folder" / "z.json", OLD_INVARIANT, [])
    (tmp_path / "folder" / "failed.log").write_text('{"invariant": {}}')

    with pytest.raises(TraincheckError, match=r"z.json:2: [^;]*$"):
        migrate(tmp_path / name, tmp_path / "new")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_disk_that_is_full_is_told_of_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of a folder that is gone when the message is read; nothing is left."""
    old = write_old_trace(tmp_path / "old")

    def refuse(source: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(source), None, str(target))

    monkeypatch.setattr(Path, "replace", refuse)

    with pytest.raises(TraincheckError, match=r"new/trace_r0_p7.json: cannot be written"):
        migrate(old, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


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


def test_the_folder_of_a_new_invariant_file_is_not_made(tmp_path: Path) -> None:
    """The message names what was asked for."""
    old = write_old_invariants(tmp_path / "old.json")

    with pytest.raises(TraincheckError, match=r"missing/new.json: cannot be written: No such"):
        migrate(old, tmp_path / "missing" / "new.json")


def test_the_command_sums_up(tmp_path: Path) -> None:
    """The last line says how much was written, and how much was not."""
    lost = OLD_INVARIANT | {"params": [{"param_type": "MoodParam"}]}
    less = {"args": {"x": {"torch.FloatTensor": {"ndim": 1}}}, "func_name": "g"}
    weak = OLD_INVARIANT | {"params": [{**OLD_INVARIANT["params"][0], "arguments": less}]}
    write_old_trace(tmp_path / "old")
    write_old_invariants(tmp_path / "old" / "i.json", OLD_INVARIANT, weak, lost)
    (tmp_path / "old" / "failed.log").write_text('{"invariant": {}}')

    ran = CliRunner().invoke(command, [str(tmp_path / "old"), str(tmp_path / "new")])

    assert ran.stdout.splitlines()[-1] == (
        "Written: 4 files with 2 invariants, 1 of which say less than before. "
        "Left out: 1 invariant and 1 file."
    )
    alone = CliRunner().invoke(
        command, [str(tmp_path / "old" / "trace_API_9_70.log"), str(tmp_path / "one")]
    )
    assert alone.stdout.splitlines()[-1] == "Written: 1 file. Left out: nothing."
