"""The file of a process, to which whole batches of lines are appended."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from io import FileIO

_LEVEL = 1  # of gzip: a tenth of the size; level 6 takes twice the time for a seventh less


@attrs.define
class TraceFile:
    """A file that is open only while it is written: what a reader finds is whole.

    With `compresses`, each batch is a gzip member of its own, so that those before the last can be
    read whatever ends the process.
    """

    folder: Path
    stem: str
    compresses: bool = False
    size: int = 0  # in bytes; 0: not begun
    _path: Path | None = None

    @property
    def path(self) -> Path:
        """Where the file is, or will be if no other is there."""
        return self._path or self._candidate(1)

    def is_intact(self) -> bool:
        """Whether the file has what was written; one that was not begun is not intact."""
        try:
            return 0 < self.size <= self.path.stat().st_size
        except OSError:
            return False

    def begin(self, lines: bytes) -> None:
        """Write the first lines, in place of what the file may have held.

        Raises:
            OSError: they could not be written, and the file is as it was or empty.
        """
        if self._path is None:
            self._path = self._create()
        with self._path.open("wb", buffering=0) as file:
            self._write(file, 0, lines)

    def append(self, lines: bytes) -> None:
        """Write more lines.

        Raises:
            OSError: they could not be written, and the file is as it was.
        """
        with self.path.open("r+b", buffering=0) as file:
            if file.seek(0, os.SEEK_END) > self.size:  # a refused write could not be taken back
                file.truncate(self.size)
                file.seek(self.size)
            self._write(file, self.size, lines)

    def packed(self, lines: bytes) -> bytes:
        """Return lines as they will stand in the file."""
        return gzip.compress(lines, _LEVEL, mtime=0) if self.compresses else lines

    def _create(self) -> Path:
        """Make the file; one of that name may be of an earlier process that had the same number."""
        number = 1
        while True:
            path = self._candidate(number)
            try:
                path.open("xb").close()
            except FileExistsError:
                number += 1
            else:
                return path

    def _candidate(self, number: int) -> Path:
        ending = ".json.gz" if self.compresses else ".json"
        return self.folder / f"{self.stem}{'' if number == 1 else f'_{number}'}{ending}"

    def _write(self, file: FileIO, start: int, content: bytes) -> None:
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            file.truncate(start)  # the next line begins where a line begins
            raise
        self.size = start + len(content)
