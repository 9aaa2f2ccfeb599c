"""Puts the marks into a program that is about to run: its script, and then what it imports."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from traincheck_instrument.program.beginning import tell
from traincheck_instrument.program.own_modules import OwnModules

if TYPE_CHECKING:
    from types import CodeType

    from traincheck_instrument.settings import RecordingSettings


def marked_code(
    settings: RecordingSettings, source: bytes, filename: str, module: str | None = None
) -> CodeType:
    """Return the code of a script with its marks; its modules get theirs when it imports them.

    If that fails, the code is that of the script as it stands, and this is told on stderr.

    Args:
        settings: What is marked.
        source: The script.
        filename: Its path.
        module: Its full name, if it runs as a module.
    """
    try:
        from traincheck_instrument.source import (  # noqa: PLC0415  only used here
            OwnFiles,
            folder_of_imports,
            rewrite,
        )

        rewritten = rewrite(source, filename, settings.models, by_hand=settings.by_hand)
        code = rewritten.code()
        left = rewritten.names_left(settings.models)
        folder = folder_of_imports(Path(filename), module)
        packages = tuple(name for name in settings.modules if name != "torch")
        own = OwnFiles(str(folder), packages, left)
        rewrite_module = functools.partial(
            rewrite, models=left, by_hand=settings.by_hand, is_module=True
        )
        OwnModules(own, rewrite_module).install()
    except Exception as error:  # noqa: BLE001  a fault of ours never stops the program
        tell("the program's steps are not marked", error)
        return compile(source, filename, "exec", dont_inherit=True)
    return code
