# ruff: noqa: INP001  Python imports it by this name, from a folder on its path
"""Puts TrainCheck's entry script in the place of the user's script.

The launcher puts this folder first on `PYTHONPATH` when it runs a shell script. Python imports this
module at start-up, in every process below. If the process is about to run the script that is to be
recorded, by its path or as a module (`-m`), it replaces itself by one that runs the entry script,
with the same options and arguments. Where subprocesses are followed, other scripts and modules are
recorded as what a recorded program starts. Then the user's own `sitecustomize` is run.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys


def started_by(argv: list[str]) -> tuple[list[str], str, bool, list[str]] | None:
    """Return what a command line of Python starts; None if it is neither script nor module.

    That is: the options of the interpreter, the script's path or the module's name, whether it is
    a module, and its arguments.
    """
    at = 1
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            return (argv[1:at], argv[at], False, argv[at + 1 :]) if at < len(argv) else None
        if word == "-" or not word.startswith("-"):
            return None if word == "-" else (argv[1 : at - 1], word, False, argv[at:])
        if word.startswith("--"):
            at += word == "--check-hash-based-pycs"
            continue
        for index, letter in enumerate(word[1:], start=1):
            if letter == "c":
                return None
            if letter == "m":
                before = [*argv[1 : at - 1], *([word[:index]] if index > 1 else [])]
                named = [*([word[index + 1 :]] if word[index + 1 :] else []), *argv[at:]]
                return (before, named[0], True, named[1:]) if named else None
            if letter in "WX":
                at += index + 1 == len(word)  # otherwise its value is the rest of this word
                break
    return None


def file_of(module: str) -> str | None:
    """Return the file that `python -m` runs for a module; nothing is imported."""
    root, *rest = module.split(".")
    path = [*([] if getattr(sys.flags, "safe_path", False) else [os.getcwd()]), *sys.path]  # noqa: PTH109
    try:
        found = (finder.find_spec(root, path) for finder in sys.meta_path)
        spec = next((one for one in found if one is not None), None)
        for part in [*rest, "__main__"]:
            places = None if spec is None else spec.submodule_search_locations
            if places is None:  # no package: the last part is looked for in packages only
                return spec.origin if spec is not None and part == "__main__" else None
            spec = importlib.machinery.PathFinder.find_spec(part, [*places])
    except Exception:  # noqa: BLE001  a finder of somebody else's may fail; Python will say so
        return None
    return None if spec is None else spec.origin


def replace_process() -> None:
    """Run the entry script instead, if this process runs the script that is recorded."""
    script, entry = os.environ.get("TRAINCHECK_SCRIPT"), os.environ.get("TRAINCHECK_ENTRY")
    started = started_by(sys.orig_argv)
    if not script or not entry or started is None:
        return
    options, name, is_module, arguments = started
    file = file_of(name) if is_module else name
    if file is None or not _is_same_file(file, script):
        return
    _note_start(entry)
    if importlib.util.find_spec("traincheck_instrument") is None:
        sys.stderr.write(
            f"traincheck: {sys.executable} has no traincheck-instrument; "
            f"{name} runs without being recorded\n"
        )
        return
    os.environ["TRAINCHECK_MODULE" if is_module else "TRAINCHECK_ARGV0"] = name
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *options, entry, *arguments])  # noqa: S606  no shell is wanted


def follow() -> None:
    """Record this process, if it is to be and is not the one that is recorded anyway."""
    settings, started = os.environ.get("TRAINCHECK_FOLLOW"), started_by(sys.orig_argv)
    # What multiprocessing starts runs neither a script nor a module: it is told by other means.
    if not settings or started is None:
        return
    _, name, is_module, _ = started
    if not is_module and _is_same_file(name, f"{os.path.dirname(settings)}/traincheck-entry.py"):  # noqa: PTH120
        return
    try:
        from traincheck_instrument.process.children import follow_settings  # noqa: PLC0415
    except ImportError as error:
        sys.stderr.write(f"traincheck: {sys.executable} runs {name} unrecorded: {error}\n")
    else:
        follow_settings(settings)


def run_users_own() -> None:
    """Leave `sys.path` as it would be without this folder, and run the user's `sitecustomize`."""
    here = os.path.dirname(__file__)  # noqa: PTH120  pathlib takes 10 ms to import
    sys.path[:] = [path for path in sys.path if path != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121  see above
    except OSError:
        return False


def _note_start(entry: str) -> None:
    """Let the launcher know that the script was found, even if nothing of it is recorded."""
    try:
        with open(f"{os.path.dirname(entry)}/.traincheck.started", "ab"):  # noqa: PTH120, PTH123
            pass
    except OSError:
        pass


if __name__ == "sitecustomize":
    replace_process()
    follow()
    run_users_own()
