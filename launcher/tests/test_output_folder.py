"""The output folder: when it may be used, what is deleted in it, and the link to the newest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from traincheck_launcher.output.folder import OutputFolder
from traincheck_launcher.output.latest import point_to_latest
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

OURS = (
    "trace_r0_p1.json",
    "trace_r1_p2.json.gz",
    "_traincheck_train.py",
    "traincheck-entry.py",
    "recording.json",
    "plan.json",
    "env_dump.txt",
    "program_output.txt",
    "program_output_r1.txt",
    "check/violations_summary.json",
    "check/failed.log",
    "check/passed.log",
    "check/not_triggered.log",
    "check/report.html",
    "check/progress.json",
    "check/stopped.json",
)
FOREIGN = ("notes.txt", "model.pt", "check/notes.txt", "sub/trace_r0_p1.json", "invariants.json")


@pytest.fixture
def folder(tmp_path: Path) -> OutputFolder:
    """A folder that is there."""
    folder = OutputFolder(tmp_path / "out")
    folder.make()
    return folder


def fill(folder: OutputFolder, *names: str) -> None:
    """Put files into it."""
    for name in names:
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text("x")


def test_what_is_not_empty_is_refused(folder):
    """The message names what is there, and what to do."""
    fill(folder, *FOREIGN[:2], "a", "b")

    with pytest.raises(ConfigError) as error:
        folder.prepare(overwrite=False)

    assert str(error.value).startswith(
        f"--output-dir: {folder.path} is not empty (a, b, model.pt, ...); choose another folder, "
        "or give --overwrite, which deletes only"
    )


def test_traces_are_told_as_such(folder):
    """They are what a user would not want to lose."""
    fill(folder, *OURS)

    with pytest.raises(ConfigError, match="holds the traces of an earlier run"):
        folder.prepare(overwrite=False)


def test_what_is_hidden_does_not_count(folder):
    """A file system or a desktop puts it there."""
    fill(folder, ".DS_Store", ".nfs01")

    folder.prepare(overwrite=False)

    assert (folder.path / ".DS_Store").exists()


def test_only_what_is_ours_is_deleted(folder):
    """Of the recording, and of a check beside it."""
    fill(folder, *OURS, *FOREIGN)

    folder.prepare(overwrite=True)

    left = {str(p.relative_to(folder.path)) for p in folder.path.rglob("*") if p.is_file()}
    assert left == {*FOREIGN, "program_output.txt"}
    assert folder.program_output.read_text() == ""


def test_the_link_leads_to_the_newest(tmp_path):
    """It is relative, so that the folder around it can be moved."""
    for name in ("traincheck_run_a_1", "traincheck_run_b_2"):
        (tmp_path / name).mkdir()
        point_to_latest(tmp_path / name)

    link = tmp_path / "traincheck_run_latest"
    assert str(link.readlink()) == "traincheck_run_b_2"
    assert {p.name for p in tmp_path.iterdir()} == {
        "traincheck_run_a_1",
        "traincheck_run_b_2",
        "traincheck_run_latest",
    }


@pytest.mark.parametrize("kind", ["file", "folder", "link", "link away"])
def test_what_is_no_link_of_ours_stays(tmp_path, kind, capsys):
    """That is told; the run goes on."""
    link = tmp_path / "traincheck_run_latest"
    if kind == "file":
        link.write_text("mine")
    elif kind == "folder":
        link.mkdir()
    else:
        link.symlink_to("elsewhere" if kind == "link" else "traincheck_run_x/sub")
    before = link.lstat()

    point_to_latest(tmp_path / "traincheck_run_a_1")

    assert link.lstat().st_ino == before.st_ino
    assert capsys.readouterr().err.startswith(f"note: {link} is no link of traincheck-collect")


def test_a_link_that_dangles_is_replaced(tmp_path):
    """The run that it led to was deleted."""
    link = tmp_path / "traincheck_run_latest"
    link.symlink_to("traincheck_run_gone_1")

    point_to_latest(tmp_path / "traincheck_run_a_1")

    assert str(link.readlink()) == "traincheck_run_a_1"


def test_without_links_there_is_none(tmp_path, monkeypatch, capsys):
    """Some file systems know none; nobody has asked for it."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)

    point_to_latest(tmp_path / "traincheck_run_a_1")

    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""
