"""The link to the newest of the folders that were named by default."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from traincheck_trace_schema.cli import note

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "traincheck_run_"
_NAME = f"{PREFIX}latest"


def point_to_latest(folder: Path) -> None:
    """Let `traincheck_run_latest`, beside a folder, lead to it.

    What is called so and is no link of ours stays; that is told. Where links can't be made, there
    is none.
    """
    link = folder.with_name(_NAME)
    if os.path.lexists(link) and not _is_ours(link):
        note(f"{link} is no link of traincheck-collect, and stays as it is")
        return
    # A link is made under another name, and renamed: there is one at any time.
    made = folder.with_name(f".{_NAME}.{os.getpid()}")
    try:
        made.symlink_to(folder.name, target_is_directory=True)
        made.replace(link)
    except OSError:  # the file system knows no links, say: it is a convenience
        with contextlib.suppress(OSError):
            made.unlink(missing_ok=True)


def _is_ours(link: Path) -> bool:
    """Whether it leads to a folder beside it that is named as ours are."""
    if not link.is_symlink():
        return False
    target = str(link.readlink())  # as it is written, not where it leads in the end
    return target.startswith(PREFIX) and os.sep not in target
