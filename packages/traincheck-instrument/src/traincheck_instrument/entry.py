"""Runs the user's program under its own identity, with recording around it.

Called by the entry script that the launcher writes. What the program sees (`sys.argv`, `__main__`,
`__file__`, `sys.path[0]`, its tracebacks and its exit code) is what it would see without us.
"""

from __future__ import annotations

import atexit
import builtins
import functools
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from traincheck_instrument.process.children import SpawnedChildren
from traincheck_instrument.program.beginning import Beginning, end, tell
from traincheck_instrument.program.marked_program import marked_code
from traincheck_instrument.program.tracebacks import without_ours
from traincheck_trace_schema.errors import EXIT_UNUSABLE, ConfigError

if TYPE_CHECKING:
    from traincheck_instrument.settings import RecordingSettings

ARGV0 = "TRAINCHECK_ARGV0"  # environment variable: the script as the user spelled it

_Hook: TypeAlias = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def run_program(settings_path: str) -> None:
    """Run the program that the settings name, as `python script.py` would.

    Its own exceptions leave this function; the traceback that Python then prints begins in the
    user's file. A fault of TrainCheck is told on stderr, and the program runs unrecorded; only
    settings that cannot be read end the process, with exit code 2.
    """
    settings = _read_settings(Path(settings_path))
    spelled = os.environ.pop(ARGV0, None) or str(settings.script)
    filename = _absolute(spelled)
    sys.argv[0] = spelled
    if not getattr(sys.flags, "safe_path", False):  # Python 3.11; nothing was inserted then
        sys.path[0] = str(Path(filename).resolve().parent)
    code = marked_code(settings, Path(filename).read_bytes(), filename)
    _prepare(settings)
    ending = _Ending()
    # Runs after threads have ended, and after what the program registers itself.
    atexit.register(_end, ending)
    try:
        exec(code, _become_main(filename))  # noqa: S102  it is the user's program
        ending.is_clean = True
    except BaseException as error:
        ending.is_clean = isinstance(error, SystemExit)
        sys.excepthook = functools.partial(_show_from, code, sys.excepthook)
        raise


@attrs.define
class _Ending:
    """How the program ended."""

    is_clean: bool = False


def _read_settings(path: Path) -> RecordingSettings:
    from traincheck_instrument.settings import RecordingSettings  # noqa: PLC0415  heavy, only here

    try:
        return RecordingSettings.read(path)
    except ConfigError as error:
        # Without them it is not even known what to run.
        sys.stderr.write(f"traincheck: {error}\n")
        sys.exit(EXIT_UNUSABLE)


def _prepare(settings: RecordingSettings) -> None:
    """Have the recording begin when the program imports torch, in its children too."""
    try:
        Beginning(settings).install()
        SpawnedChildren(settings).install()
    except Exception as error:  # noqa: BLE001  a fault of ours never stops the program
        tell("recording could not begin, the program runs without it", error)


def _end(ending: _Ending) -> None:
    end(is_clean=ending.is_clean)


def _absolute(spelled: str) -> str:
    """Return the path that Python makes of a script's: absolute, and otherwise as it is spelled."""
    return spelled if Path(spelled).is_absolute() else f"{Path.cwd()}/{spelled}"


def _become_main(filename: str) -> dict[str, Any]:
    """Put a new `__main__` in place of the entry script's, and return its namespace."""
    main = ModuleType("__main__")
    names = vars(main)
    if "__annotations__" in vars(sys.modules["__main__"]):  # Python 3.13 and earlier
        names["__annotations__"] = {}
    names |= {
        "__builtins__": builtins,
        "__file__": filename,
        "__cached__": None,
        "__loader__": SourceFileLoader("__main__", filename),
    }
    _keep_alive(sys.modules["__main__"])
    sys.modules["__main__"] = main
    return names


def _keep_alive(module: ModuleType) -> None:
    """Keep the entry script's module: its frame still runs."""
    sys.modules["__traincheck_entry__"] = module


def _show_from(
    code: CodeType,
    hook: _Hook,
    cls: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
) -> None:
    """Show an exception that ended the program as it would be shown without us."""
    del traceback
    without_ours(error, code)
    hook(cls, error, error.__traceback__)
