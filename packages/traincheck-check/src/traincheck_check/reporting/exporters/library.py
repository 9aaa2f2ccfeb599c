"""Libraries of exporters: extras of this package, imported when an exporter begins."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.cli import warn
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType


def imported(module: str, *, extra: str) -> ModuleType:
    """Import a module of a library that comes with an extra.

    Raises:
        ConfigError: It can't be imported.
    """
    try:
        return import_module(module)
    except Exception as error:  # a broken installation fails in any way
        raise ConfigError(
            f"{module} can't be imported ({one_line(error)}); "
            f"pip install 'traincheck-check[{extra}]'"
        ) from error


def is_asked_for(values: Mapping[str, Any], flag: str) -> bool:
    """Return whether a flag was given; options that have no effect without it are told.

    Args:
        values: Of all options.
        flag: The parameter of an option like `report_wandb`, whose other options begin `wandb_`.
    """
    if values.get(flag):
        return True
    start = f"{flag.removeprefix('report_')}_"
    for name in (name for name, value in values.items() if name.startswith(start) and value):
        warn(f"{_spelled(name)} has no effect without {_spelled(flag)}")
    return False


def one_line(error: Exception) -> str:
    """Say what an error is, and the first line of what it says."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".rstrip(": ")


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"
