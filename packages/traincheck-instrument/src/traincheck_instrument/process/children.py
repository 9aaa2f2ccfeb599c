"""Lets the processes that a recorded program starts carry on recording.

A forked one does by itself. One that `multiprocessing` spawns, or has its fork server start, is a
Python of its own: it is told in the data by which `multiprocessing` prepares it, so that neither
the environment nor the command line of any process is another than without us.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincheck_instrument.program.after_import import AfterImport
from traincheck_instrument.program.beginning import Beginning, tell
from traincheck_instrument.program.marked_main import MarkedMain
from traincheck_instrument.program.marked_program import marked_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincheck_instrument.settings import RecordingSettings

_KEY = "traincheck"  # in the data; multiprocessing passes over what it does not know
# Run in the child by the Python that the program chose for it, which may lack this package.
_CARRY_ON = """\
try:
    from traincheck_instrument.process.children import carry_on
except Exception as error:
    import sys
    sys.stderr.write(f"traincheck: {{sys.executable}} runs a process unrecorded: {{error}}\\n")
else:
    carry_on({document!r}, {main!r}, {module!r})
"""


class SpawnedChildren:
    """Tells spawned processes to record. `install` and `uninstall` may be called twice.

    It is the program that imports `multiprocessing`, which notes then in which folder it is.
    """

    def __init__(self, settings: RecordingSettings) -> None:
        self._settings = settings
        self._import = AfterImport("multiprocessing.spawn", self._replace)
        self._replaced: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def install(self) -> None:
        """Tell the processes that are started from now on."""
        if self._replaced is None:
            self._import.install()

    def _replace(self) -> None:
        from multiprocessing import spawn  # noqa: PLC0415  see above

        original = spawn.get_preparation_data

        def get_preparation_data(name: str) -> dict[str, Any]:
            data = original(name)
            with contextlib.suppress(Exception):  # the process runs unrecorded
                data[_KEY] = _CarryOn(self._text(data))
            return data

        spawn.get_preparation_data = get_preparation_data
        self._replaced = (original, get_preparation_data)

    def uninstall(self) -> None:
        """Tell nobody any more."""
        from multiprocessing import spawn  # noqa: PLC0415  see above

        self._import.uninstall()
        if self._replaced is not None:
            original, ours = self._replaced
            if spawn.get_preparation_data is ours:
                spawn.get_preparation_data = original
            self._replaced = None

    def _text(self, data: Mapping[str, Any]) -> str:
        module, main = data.get("init_main_from_name"), data.get("init_main_from_path")
        if module is not None:
            main = getattr(sys.modules["__main__"], "__file__", None)
        return _CARRY_ON.format(document=self._settings.text(), main=main, module=module)


class _CarryOn:
    """Pickled as a call that is made when the child is prepared, before it runs the program."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return exec, (self._text, {})


def carry_on(document: str, main: str | None, module: str | None = None) -> None:
    """Begin to record this process; called in a child, before anything of the program runs there.

    Args:
        document: The settings.
        main: The script of the program, which `multiprocessing` is about to run again.
        module: Its full name, if it runs as a module.
    """
    try:
        from traincheck_instrument.settings import RecordingSettings  # noqa: PLC0415  heavy

        settings = RecordingSettings.of_text(document)
        if main is not None and settings.script is not None:
            if module is None:
                _mark_main(settings, main)
            else:
                MarkedMain(settings, module, main).install()
        Beginning(settings, is_child=True).install()
        SpawnedChildren(settings).install()
    except Exception as error:  # noqa: BLE001  a fault of ours never stops the program
        tell("recording could not begin in a process that the program started", error)


def follow_subprocesses(site_hook: Path, settings_path: str) -> None:
    """Have the Python programs that this process starts find the settings; see `follow_settings`.

    Args:
        site_hook: A folder with the `sitecustomize` that looks for them.
        settings_path: The file of the settings.
    """
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(site_hook), *([path] if path else [])])
    os.environ["TRAINCHECK_FOLLOW"] = settings_path


def follow_settings(path: str) -> None:
    """Begin to record this process as the settings in a file say, without marks in its script."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:  # the folder of the run is gone
        tell("a process that the program started runs unrecorded", error)
    else:
        carry_on(text, None)


def _mark_main(settings: RecordingSettings, main: str) -> None:
    """Have the script run with its marks when `multiprocessing` runs it as `__mp_main__`.

    `runpy`, which does that, finds its `compile` among its own names first.
    """
    import runpy  # noqa: PLC0415  which multiprocessing has imported

    def compile_marked(source: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        if filename != main:
            return builtins.compile(source, filename, *args, **kwargs)
        del vars(runpy)["compile"]
        return marked_code(settings, source, filename)

    vars(runpy)["compile"] = compile_marked
