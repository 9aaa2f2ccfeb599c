"""The entry script, which runs in the place of the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = """\
# Runs {script!r} under TrainCheck. Written by traincheck-collect.

from pathlib import Path

from traincheck_instrument.entry import run_program

run_program(str(Path(__file__).with_name({settings!r})))
"""


def entry_script(script: Path, settings: Path) -> str:
    """Return the text of the entry script.

    Args:
        script: The user's.
        settings: The settings file, which lies beside the entry script.
    """
    return _TEXT.format(script=script.name, settings=settings.name)
