"""Copies of the files beside the training script, so that the folder tells what code it was.

The program runs where it is; nothing reads the copies. So what is no code stays away: caches,
environments, other output folders, and what is large.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.commands.screen import counted
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

COPIES_NAME = "program_files"  # in an output folder
MAX_FILE_BYTES = 10 * 2**20
MAX_BYTES = 200 * 2**20
MAX_FILES = 10_000
_CACHES = frozenset({"__pycache__", "node_modules", "venv"})
# A folder that holds one of them: a cache, an environment, the output of a run.
_MARKS_OF_CACHES = ("CACHEDIR.TAG", "pyvenv.cfg", "env_dump.txt", "violations_summary.json")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_LARGE = f"files above {MAX_FILE_BYTES // 2**20} MiB"


@attrs.frozen(kw_only=True)
class Copies:
    """What was copied, and what was not, with the reason; paths as seen from `source`."""

    source: str
    files: tuple[str, ...]
    left_out: dict[str, str]
    is_complete: bool  # otherwise there was an end to it

    def told(self, where: str) -> str:
        """Say it in one line."""
        text = f"{counted(len(self.files), 'file')} of {self.source} copied to {where}"
        reasons = Counter(self.left_out.values())
        parts = ", ".join(f"{reason} ({count})" for reason, count in reasons.items())
        text += f"; left out: {parts}" if parts else ""
        if self.is_complete:
            return text
        return f"{text}; no more than {MAX_FILES:,} files and {MAX_BYTES // 2**20} MiB are copied"


@attrs.define
class _Copying:
    """A copying that is at work."""

    source: Path
    target: Path
    files: list[str] = attrs.field(factory=list)
    left_out: dict[str, str] = attrs.field(factory=dict)
    size: int = 0  # bytes
    is_full: bool = False  # no more is copied

    def copy(self, name: str) -> None:
        """Copy a file, or take note of why it is not."""
        file = self.source / name
        shown = name.encode("utf-8", "backslashreplace").decode()
        reason = self._why_not(file) if shown == name else "files whose names are not UTF-8"
        if reason is None:
            try:
                copy = self.target / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    raise
                reason = "files that can't be read"
        if reason is None:
            self.files.append(name)
        elif not self.is_full:
            self.left_out[shown] = reason

    def _why_not(self, file: Path) -> str | None:
        try:
            status = file.stat()
        except OSError:
            return "files that can't be read"
        if not file.is_file():
            return "what is no file"
        if status.st_size > MAX_FILE_BYTES:
            return _LARGE
        self.size += status.st_size
        self.is_full = self.size > MAX_BYTES or len(self.files) >= MAX_FILES
        return "too much" if self.is_full else None

    def pass_over(self, folder: Path, reason: str) -> None:
        """Take note that nothing of a folder is copied."""
        name = str(folder.relative_to(self.source))
        self.left_out[name.encode("utf-8", "backslashreplace").decode()] = reason


def copy_files(source: Path, target: Path, manifest: Path) -> Copies:
    """Copy the files of a folder and of those below it, and write down which.

    The folder around the target may lie below the source; it is not copied into itself.

    Raises:
        ConfigError: there is something in the target already, or it cannot be written; then nothing
            is left in it.
    """
    if target.exists() and any(target.iterdir()):
        raise ConfigError(f"--copy-all-files: {target} holds files of yours; move them away")
    copying = _Copying(source, target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in _names(copying):
            copying.copy(name)
            if copying.is_full:
                break
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise ConfigError(
            f"--copy-all-files: {target} cannot be written: {error.strerror}"
        ) from error
    copies = Copies(
        source=str(source),
        files=tuple(copying.files),
        left_out=dict(copying.left_out),
        is_complete=not copying.is_full,
    )
    write_json(manifest, copies)
    return copies


def _names(copying: _Copying) -> Iterator[str]:
    """Yield the files to copy; note the folders that are passed over."""
    output = copying.target.parent.resolve()

    def note(error: OSError) -> None:
        copying.pass_over(Path(error.filename), "folders that can't be read")

    for folder, folders, files in os.walk(copying.source, onerror=note):
        here = Path(folder)
        reasons = {name: _why_not_into(here / name, output) for name in sorted(folders)}
        folders[:] = [name for name, reason in reasons.items() if reason is None]
        for name, reason in reasons.items():
            if reason is not None:
                copying.pass_over(here / name, reason)
        yield from (
            str((here / name).relative_to(copying.source))
            for name in sorted(files)
            if not name.endswith(".pyc")
        )


def _why_not_into(folder: Path, output: Path) -> str | None:
    if folder.is_symlink():
        return "links to folders"
    if folder.resolve() in {output, output / COPIES_NAME}:
        return "the output folder"
    if folder.name.startswith(".") or folder.name in _CACHES:
        return "hidden folders and caches"
    if any((folder / mark).exists() for mark in _MARKS_OF_CACHES):
        return "caches, environments and outputs of TrainCheck"
    return None


def delete_copies(target: Path, manifest: Path) -> None:
    """Delete what a manifest names, and the folders that are empty then; nothing else.

    Raises:
        OSError: something cannot be deleted.
    """
    for name in () if target.is_symlink() else _listed(manifest):
        path = target / name
        if not Path(name).is_absolute() and ".." not in Path(name).parts and path.is_file():
            path.unlink()
    for folder, _, _ in os.walk(target, topdown=False):
        if not any(Path(folder).iterdir()):
            Path(folder).rmdir()
    manifest.unlink(missing_ok=True)


def _listed(manifest: Path) -> list[str]:
    if not manifest.is_file():
        return []
    try:
        document = read_json(manifest, error=ConfigError)
    except ConfigError:
        return []
    files = document.get("files") if isinstance(document, dict) else None
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
