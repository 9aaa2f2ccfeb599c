# ruff: noqa: INP001  Python imports it by this name, from a folder on its path
"""Puts TrainCheck's entry script in the place of the user's script.

The launcher puts this folder first on `PYTHONPATH` when it runs a shell script. Python imports this
module at start-up, in every process below. If the process is about to run the script that is to be
recorded, it replaces itself by one that runs the entry script, with the same options and arguments.
Otherwise the user's own `sitecustomize` is run, and nothing else happens.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys


def script_index(argv: list[str]) -> int | None:
    """Return where the script stands in a command line of Python; None if it runs no script."""
    at = 1
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            return at if at < len(argv) else None
        if word == "-" or not word.startswith("-"):
            return None if word == "-" else at - 1
        if word.startswith("--"):
            at += word == "--check-hash-based-pycs"
            continue
        for index, letter in enumerate(word[1:], start=2):
            if letter in "cm":
                return None
            if letter in "WX":
                at += index == len(word)  # otherwise its value is the rest of this word
                break
    return None


def replace_process() -> None:
    """Run the entry script instead, if this process runs the script that is recorded."""
    script, entry = os.environ.get("TRAINCHECK_SCRIPT"), os.environ.get("TRAINCHECK_ENTRY")
    argv = sys.orig_argv
    at = script_index(argv)
    if not script or not entry or at is None or not _is_same_file(argv[at], script):
        return
    if importlib.util.find_spec("traincheck_instrument") is None:
        sys.stderr.write(
            f"traincheck: {sys.executable} has no traincheck-instrument; "
            f"{argv[at]} runs without being recorded\n"
        )
        return
    os.environ["TRAINCHECK_ARGV0"] = argv[at]
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *argv[1:at], entry, *argv[at + 1 :]])  # noqa: S606  no shell is wanted


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


if __name__ == "sitecustomize":
    replace_process()
    run_users_own()
