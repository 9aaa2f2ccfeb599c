"""The shards of a run as they appear, in folders that may appear later, too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.reading.lines import LineReader
from traincheck_trace_schema.reading.opening import Unread, is_legacy, is_shard_name
from traincheck_trace_schema.reading.shard import (
    NoHeaderError,
    OtherVersionError,
    Shard,
    SharedRecordings,
    open_shard,
)


@attrs.define(eq=False)
class Arrivals:
    """Finds each shard once, when its first line is whole."""

    paths: Sequence[Path]
    is_strict: bool
    _known: set[str] = attrs.field(init=False, factory=set)
    _real: set[str] = attrs.field(init=False, factory=set)  # the same, with links followed
    # Files that are no shard so far, and their size and time of change when they were looked at.
    _waiting: dict[Path, tuple[int, int]] = attrs.field(init=False, factory=dict)
    _unread: dict[Path, Unread] = attrs.field(init=False, factory=dict)
    _shared: SharedRecordings = attrs.field(init=False, factory=SharedRecordings)
    _has_any: bool = attrs.field(init=False, default=False)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """What turned out to be no shard; a file that changes is looked at again."""
        return tuple(self._unread.values())

    def look(self, *, is_last: bool = False) -> list[Shard]:
        """Return the shards that are new; if it is the last look, no file is waited for.

        Raises:
            TraceError: a file can't be followed, and it was named or is of another version, and
                there is no shard so far; or any, if `is_strict`.
        """
        self._waiting.update((path, (-1, -1)) for path in self._new_files())
        opened = [self._open(path, is_last=is_last) for path in tuple(self._waiting)]
        shards = [self._shared.of(shard) for shard in opened if shard is not None]
        self._has_any = self._has_any or bool(shards)
        return shards

    def _new_files(self) -> Iterator[Path]:
        for path in self.paths:
            for member in _members(path):
                if member not in self._known:
                    self._known.add(member)
                    real = os.path.realpath(member)
                    if real not in self._real:
                        self._real.add(real)
                        yield Path(member)

    def _open(self, path: Path, *, is_last: bool) -> Shard | None:
        """Open a file that is waited for; None if it is no shard, or for now."""
        if not (self._has_changed(path) or is_last):
            return None
        try:
            shard = _open(path, is_strict=self.is_strict)
        except TraceError as error:
            if is_last or not _may_change(path, error):
                self._refuse(path, error)
            return None
        if shard is not None:
            self._unread.pop(path, None)
            del self._waiting[path]
        elif is_last:
            self._unread[path] = Unread(path)
        return shard

    def _has_changed(self, path: Path) -> bool:
        try:
            found = path.stat()
        except OSError:
            return False
        state = found.st_size, found.st_mtime_ns
        before, self._waiting[path] = self._waiting[path], state
        return state != before

    def _refuse(self, path: Path, error: TraceError) -> None:
        is_unusable = path in self.paths or isinstance(error, OtherVersionError)
        if self.is_strict or (is_unusable and not self._has_any):
            raise error
        self._unread[path] = Unread(path, str(error))


def _members(path: Path) -> Iterator[str]:
    """Yield the files of a folder that may be shards; a path that is no folder is one itself."""
    try:
        with os.scandir(path) as entries:
            yield from (entry.path for entry in entries if is_shard_name(entry.name))
    except NotADirectoryError:
        yield str(path)
    except OSError:
        pass  # it is not there yet, or for a while not


def _open(path: Path, *, is_strict: bool) -> Shard | None:
    try:
        shard = open_shard(path, is_strict=is_strict)
    except NoHeaderError:
        if not is_legacy(path):
            raise
        shard = None
    if shard is None and is_legacy(path):
        raise OtherVersionError(
            f"{path}: is a trace of TrainCheck 0.x, which can't be followed while it grows; check "
            "it with traincheck-check when the program has ended"
        )
    return shard


def _may_change(path: Path, error: TraceError) -> bool:
    """Whether a file that is no shard may become one: it can't be read, or has no whole line."""
    if isinstance(error.__cause__, OSError):
        return True
    if not isinstance(error, NoHeaderError):
        return False
    reader = LineReader(path)
    try:
        while (lines := reader.read()) is not None:
            if lines or reader.is_skipping:
                return False
    except TraceError:
        return True
    finally:
        reader.close()
    return not reader.problem
