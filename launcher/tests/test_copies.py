"""`--copy-all-files`: what is copied, what is not, and what is deleted again."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from traincheck_launcher.output import copies
from traincheck_launcher.output.copies import copy_files, delete_copies
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a program."""
    for name in ("train.py", "lib/net.py", "conf/a b.yml"):
        write(tmp_path / "src" / name)
    return tmp_path / "src"


def write(path: Path, size: int = 1) -> None:
    """Write a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def copied(source: Path) -> list[str]:
    """Copy into `out`, and return the names of all files there."""
    target = source / "out" / "program_files"
    result = copy_files(source, target, source / "out" / "program_files.json")
    there = sorted(str(p.relative_to(target)) for p in target.rglob("*") if not p.is_dir())
    assert there == sorted(result.files)
    return there


def test_code_is_copied_with_its_folders(source):
    """Content, mode and names."""
    (source / "train.py").write_text("print('ran')\n")
    (source / "train.py").chmod(0o755)

    assert copied(source) == ["conf/a b.yml", "lib/net.py", "train.py"]
    copy = source / "out/program_files/train.py"
    assert copy.read_text() == "print('ran')\n"
    assert copy.stat().st_mode & 0o777 == 0o755


def test_what_is_no_code_is_left_out_and_told(source):
    """Caches, environments, outputs of other runs, links to folders, and the output itself."""
    for name in (".git/x", "lib/__pycache__/x.pyc", "env/pyvenv.cfg", "old/env_dump.txt"):
        write(source / name)
    write(source / "cache/CACHEDIR.TAG")
    write(source / "loose.pyc")
    (source / "closed").mkdir(mode=0)
    write(source / "out/trace_r0_p1.json")
    (source / "loop").symlink_to(source)
    (source / "linked.py").symlink_to("train.py")
    (source / "dangling").symlink_to("nowhere")
    os.mkfifo(source / "pipe")

    names = copied(source)
    (source / "closed").chmod(0o700)

    assert names == ["conf/a b.yml", "lib/net.py", "linked.py", "train.py"]
    assert json.loads((source / "out/program_files.json").read_text())["left_out"] == {
        ".git": "hidden folders and caches",
        "lib/__pycache__": "hidden folders and caches",
        "env": "caches, environments and outputs of TrainCheck",
        "old": "caches, environments and outputs of TrainCheck",
        "cache": "caches, environments and outputs of TrainCheck",
        "loop": "links to folders",
        "dangling": "files that can't be read",
        "pipe": "what is no file",
        "out": "the output folder",
    } | ({} if os.geteuid() == 0 else {"closed": "folders that can't be read"})


def test_a_name_that_is_no_utf8_is_left_out(source):
    """The list of what was copied could not hold it."""
    write(source / os.fsdecode(b"caf\xe9.py"))

    assert copied(source) == ["conf/a b.yml", "lib/net.py", "train.py"]


def test_large_files_are_left_out_and_told(source, tmp_path):
    """They are data; what is told counts them."""
    for name, size in (("data.bin", copies.MAX_FILE_BYTES + 1), ("small.bin", 10)):
        with (source / name).open("wb") as file:
            file.truncate(size)

    result = copy_files(source, tmp_path / "out/program_files", tmp_path / "out/m.json")

    assert "small.bin" in result.files
    assert result.left_out == {"data.bin": "files above 10 MiB"}
    assert result.told("there") == (
        f"4 files of {source} copied to there; left out: files above 10 MiB (1)"
    )


@pytest.mark.parametrize(("limit", "value"), [("MAX_FILES", 2), ("MAX_BYTES", 2)])
def test_there_is_an_end_to_it(source, monkeypatch, limit, value):
    """A folder may hold a data set of a million files."""
    monkeypatch.setattr(copies, limit, value)

    result = copy_files(source, source / "out/program_files", source / "out/m.json")

    assert len(result.files) == 2
    assert not result.is_complete
    assert "no more than" in result.told("there")


def test_what_was_copied_is_deleted_and_nothing_else(source):
    """A file of the user's among the copies stays, and its folder."""
    copied(source)
    target, manifest = source / "out/program_files", source / "out/program_files.json"
    write(target / "lib/mine.txt")

    delete_copies(target, manifest)

    assert [str(p.relative_to(target)) for p in target.rglob("*")] == ["lib", "lib/mine.txt"]
    assert not manifest.exists()
    with pytest.raises(ConfigError, match="holds files of yours"):
        copy_files(source, target, manifest)


@pytest.mark.parametrize(
    "text", ['{"files": ["../../train.py", "SOURCE/train.py"]}', '{"files": 3}', "[]", "{broken"]
)
def test_a_list_that_is_not_ours_deletes_nothing_outside(source, text):
    """Whatever is written in it."""
    copied(source)
    manifest = source / "out/program_files.json"
    manifest.write_text(text.replace("SOURCE", str(source)))

    delete_copies(source / "out/program_files", manifest)

    assert (source / "train.py").exists()
