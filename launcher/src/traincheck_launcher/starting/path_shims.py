"""Commands that come first on PATH, for a shell script that sets `PYTHONPATH` itself.

By `PYTHONPATH` each Python below a script is told to look whether it is to be recorded. A script
that sets it anew would lose that; so it finds, in place of Python and of the commands that are
written in it, files that put TrainCheck's part back in front and run the command that was meant.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "_traincheck_bin"
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
_WRITTEN_IN_PYTHON = re.compile(rb"#!\s*\S*python[\d.]*\b|#!\s*\S*env\s+python[\d.]*\b")
_LONGEST = 256  # bytes of a first line


def write_shims(folder: Path, hook: Path, path: str) -> None:
    """Write the files for what a search path offers.

    Args:
        folder: Where they go.
        hook: What they put first on `PYTHONPATH`.
        path: The search path, as PATH has it.

    Raises:
        OSError: one can't be written.
    """
    folder.mkdir(exist_ok=True)
    for name, command in _commands(path):
        shim = folder / name
        shim.write_text(
            "#!/bin/sh\n"
            f"PYTHONPATH={shlex.quote(str(hook))}${{PYTHONPATH:+:$PYTHONPATH}}\n"
            f'export PYTHONPATH\nexec {shlex.quote(command)} "$@"\n',
            encoding="utf-8",
        )
        shim.chmod(0o755)


def _commands(path: str) -> Iterator[tuple[str, str]]:
    """Yield Python and the commands that are written in it, the first of each name."""
    known: set[str] = set()
    for place in path.split(os.pathsep):
        try:
            entries = sorted(os.scandir(place or "."), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name not in known and os.access(entry.path, os.X_OK) and entry.is_file():
                known.add(entry.name)  # even if it is none: it comes before others of its name
                if _PYTHON.fullmatch(entry.name) or _is_written_in_python(entry.path):
                    yield entry.name, str(Path(entry.path).absolute())


def _is_written_in_python(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return _WRITTEN_IN_PYTHON.match(file.readline(_LONGEST)) is not None
    except OSError:
        return False
