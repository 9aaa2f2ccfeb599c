"""Runs the user's program under its own identity, with recording around it.

Called by the entry script that the launcher writes. What the program sees (`sys.argv`, `__main__`,
`__file__`, `sys.path[0]`, its tracebacks and its exit code) is what it would see without us.
"""

from __future__ import annotations

import atexit
import builtins
import functools
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from traincheck_instrument.gate.stopping import StoppedByCheck
from traincheck_instrument.process.children import SpawnedChildren, follow_subprocesses
from traincheck_instrument.program.beginning import Beginning, end, tell, tell_failure
from traincheck_instrument.program.marked_main import MarkedMain, full_name
from traincheck_instrument.program.marked_program import marked_code
from traincheck_instrument.program.module_search import find_module
from traincheck_instrument.program.tracebacks import without_ours
from traincheck_trace_schema.errors import EXIT_UNUSABLE, ConfigError

if TYPE_CHECKING:
    from traincheck_instrument.settings import RecordingSettings

# Environment variables: how the user named what is run, as a script or as a module.
ARGV0 = "TRAINCHECK_ARGV0"
MODULE = "TRAINCHECK_MODULE"

_Hook: TypeAlias = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def run_program(settings_path: str) -> None:
    """Run the program that the settings name, as `python script.py` or `python -m module` would.

    Its own exceptions leave this function; the traceback that Python then prints begins in the
    user's file. A fault of TrainCheck is told on stderr, and the program runs unrecorded; only
    settings that cannot be read end the process, with exit code 2.
    """
    settings = _read_settings(Path(settings_path))
    script, module = os.environ.pop(ARGV0, None), os.environ.pop(MODULE, None)
    if script is None and (module := module or settings.module) is not None:
        program = _module(settings, module)
    else:
        program = _script(settings, script or str(settings.script))
    _prepare(settings, settings_path)
    ending = _Ending()
    # Runs after threads have ended, and after what the program registers itself.
    atexit.register(_end, ending)
    try:
        program.run()
        ending.is_clean = True
    except BaseException as error:
        ending.is_clean = isinstance(error, SystemExit)
        if _is_failure(error):
            without_ours(error, program.code)
            tell_failure(error)
        sys.excepthook = functools.partial(_show_from, program.code, sys.excepthook)
        raise


def _is_failure(error: BaseException) -> bool:
    """Whether what ends the program is its failure: not asked for, and no exit without an error."""
    if isinstance(error, SystemExit):
        return bool(error.code) and not isinstance(error, StoppedByCheck)
    return not isinstance(error, KeyboardInterrupt)


@attrs.frozen
class _Program:
    """A program that is about to run."""

    run: Callable[[], object]
    code: CodeType  # what a traceback begins with


def _script(settings: RecordingSettings, spelled: str) -> _Program:
    """Take the identity of a script, and put the marks into it."""
    filename = _absolute(spelled)
    sys.argv[0] = spelled
    _set_first_path(str(Path(filename).resolve().parent))
    code = marked_code(settings, Path(filename).read_bytes(), filename)
    names = {
        "__file__": filename,
        "__cached__": None,
        "__loader__": SourceFileLoader("__main__", filename),
    }
    return _Program(lambda: exec(code, _become_main(names)), code)  # noqa: S102  it is the user's program


def _module(settings: RecordingSettings, name: str) -> _Program:
    """Take the identity of a module, and have the marks put into it."""
    run_module = runpy._run_module_as_main  # type: ignore[attr-defined]  # noqa: SLF001  it is `-m`
    sys.argv[0] = "-m"  # which runpy replaces
    _set_first_path(os.getcwd())  # noqa: PTH109  as Python does
    spec = find_module(full_name(name, str(settings.script)), sys.path)
    try:
        if spec is not None and spec.origin is not None:
            MarkedMain(settings, full_name(name, spec.origin), spec.origin).install()
    except (OSError, SyntaxError):  # runpy says so
        pass

    def run() -> None:
        _become_main({})
        run_module(name)

    return _Program(run, run_module.__code__)


def _set_first_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):  # Python 3.11; nothing was inserted then
        sys.path[0] = folder


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


def _prepare(settings: RecordingSettings, settings_path: str) -> None:
    """Have the recording begin when the program imports torch, in its children too."""
    try:
        Beginning(settings).install()
        SpawnedChildren(settings).install()
        if settings.site_hook is not None:
            follow_subprocesses(settings.site_hook, settings_path)
    except Exception as error:  # noqa: BLE001  a fault of ours never stops the program
        tell("recording could not begin, the program runs without it", error)


def _end(ending: _Ending) -> None:
    end(is_clean=ending.is_clean)


def _absolute(spelled: str) -> str:
    """Return the path that Python makes of a script's: absolute, and otherwise as it is spelled."""
    return spelled if Path(spelled).is_absolute() else f"{Path.cwd()}/{spelled}"


def _become_main(facts: dict[str, Any]) -> dict[str, Any]:
    """Put a new `__main__` in place of the entry script's, and return its namespace."""
    main = ModuleType("__main__")
    names = vars(main)
    if "__annotations__" in vars(sys.modules["__main__"]):  # Python 3.13 and earlier
        names["__annotations__"] = {}
    names |= {"__builtins__": builtins, **facts}
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
