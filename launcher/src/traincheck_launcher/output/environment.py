"""Writes down under what a run took place: arguments, versions, environment without secrets."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLANK = "(blanked)"
_FOLDERS = frozenset({"PWD", "OLDPWD"})  # named like a password
_NAME = (
    r"(?i:key|token(?!iz)|secret|pass(?![a-z])|pass[wcp]|pwd|credential|auth|cookie|session|private"
    r"|dsn|webhook|signature)"
)
_SECRET_NAME = re.compile(_NAME)
_SECRET_VALUE = re.compile(
    r"://[^/\s@]+@"  # a URL with a user
    r"|://[^/\s@]*:\S*@"  # or with a password, which may hold a slash
    r"|\b(?:sk|pk|gh[oprsu]|github_pat|hf|glpat|npm|xox[abp])[-_][A-Za-z0-9_-]{16,}"  # known prefix
    r"|\beyJ[A-Za-z0-9_-]{10,}\."  # a JSON web token
    r"|\bA(?:KI|SI)A[0-9A-Z]{16}\b"
    r"|\b(?i:bearer)\s+\S"
    r"|-----BEGIN"
    # An assignment or option inside: `AccountKey=X;`, `{"password": "X"}`, `run --token X`.
    rf"|{_NAME}[\w.-]*(?:[\"']?\s*=|[\"']\s*:|:\s)\s*\S"
    rf"|(?:^|\s)--?[\w.-]*{_NAME}[\w.-]*\s+\S"
)
_PLAIN_NAME = re.compile(r"[\w.+@/-]+")
_VERSIONS = ("torch", "numpy")


def describe(
    arguments: Sequence[str], environment: Mapping[str, str], configured: Sequence[str] = ()
) -> str:
    """Return the text of `env_dump.txt`.

    Args:
        arguments: The command line.
        environment: The variables.
        configured: A config file, and what it says, in words like those of a command line.
    """
    lines = ["[command]", *_without_secrets(arguments), ""]
    if configured:
        lines += ["[config file]", *_without_secrets(configured), ""]
    lines += ["[versions]", f"python {platform.python_version()}", f"executable {sys.executable}"]
    lines += [f"platform {platform.platform()}", *_versions(), ""]
    lines += ["[folder]", os.getcwd(), "", "[environment]"]  # noqa: PTH109  as the program sees it
    lines += [f"{name}={_shown(name, environment[name])}" for name in sorted(environment)]
    return "\n".join(lines) + "\n"


def _is_secret(name: str) -> bool:
    """Whether a variable or an option of this name holds a secret."""
    return name not in _FOLDERS and bool(_SECRET_NAME.search(name))


def _shown(name: str, value: str) -> str:
    is_secret = _is_secret(name) or _SECRET_VALUE.search(value)
    return BLANK if is_secret and value else value.replace("\n", "\\n")


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """Blank the values in `--api-key X`, `--token=X`, `password=X`, `--env HF_TOKEN=X`."""
    shown, is_value = [], False
    for argument in arguments:
        shown.append(BLANK if is_value else _shown_argument(argument))
        is_option = argument.startswith("-") and "=" not in argument
        is_value = (is_option and _is_secret(argument)) or argument.lower() == "bearer"
    return shown


def _shown_argument(argument: str) -> str:
    name, equals, value = argument.partition("=")
    if equals and _PLAIN_NAME.fullmatch(name) and not _SECRET_VALUE.search(name):
        return f"{name}={_shown(name, value) if _is_secret(name) else _shown_argument(value)}"
    return _shown("", argument)


def _versions() -> list[str]:
    found = {dist.name: dist.version for dist in distributions()}
    return [
        f"{name} {found[name]}"
        for name in sorted(found)
        if name in _VERSIONS or name.startswith("traincheck-")
    ]
