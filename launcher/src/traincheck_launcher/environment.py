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
_SECRET_NAME = re.compile(
    "key|token|secret|passw|(?<=_)pwd|credential|auth|cookie|session|private|dsn|webhook|signature",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"://[^/\s@]+@"  # a URL with a user or password
    r"|\b(?:sk|pk|ghp|gho|ghs|hf|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}"  # keys with a known prefix
    r"|\beyJ[A-Za-z0-9_-]{10,}\."  # a JSON web token
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|-----BEGIN"
)
_SECRET_OPTION = re.compile(r"^--?[\w-]*(?:key|token|secret|passw)[\w-]*", re.IGNORECASE)
_VERSIONS = ("torch", "numpy")


def describe(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the text of `env_dump.txt`."""
    lines = ["[command]", *_without_secrets(arguments), ""]
    lines += ["[versions]", f"python {platform.python_version()}", f"executable {sys.executable}"]
    lines += [f"platform {platform.platform()}", *_versions(), ""]
    lines += ["[folder]", os.getcwd(), "", "[environment]"]  # noqa: PTH109  as the program sees it
    lines += [f"{name}={_shown(name, environment[name])}" for name in sorted(environment)]
    return "\n".join(lines) + "\n"


def _shown(name: str, value: str) -> str:
    is_secret = _SECRET_NAME.search(name) or _SECRET_VALUE.search(value)
    return BLANK if is_secret and value else value.replace("\n", "\\n")


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """Blank the values of options such as `--api-key X` or `--token=X`."""
    shown, is_value = [], False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        is_secret = bool(_SECRET_OPTION.match(name))
        if (is_value and not argument.startswith("-")) or _SECRET_VALUE.search(argument):
            shown.append(BLANK)
        else:
            shown.append(f"{name}={BLANK}" if is_secret and equals else argument)
        is_value = is_secret and not equals
    return shown


def _versions() -> list[str]:
    found = {dist.name: dist.version for dist in distributions()}
    return [
        f"{name} {found[name]}"
        for name in sorted(found)
        if name in _VERSIONS or name.startswith("traincheck-")
    ]
