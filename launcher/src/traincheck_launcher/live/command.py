"""The command that checks a run while it goes on, and whether what is asked of it can be had."""

from __future__ import annotations

import shutil
import sysconfig
from typing import TYPE_CHECKING

from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.suppression_file import read_suppressions

if TYPE_CHECKING:
    from traincheck_launcher.live.output import LiveOutput
    from traincheck_launcher.options import CollectOptions

_CHECKER = "traincheck-onlinecheck"
# How soon it looks again after something has come. In lockstep the training waits meanwhile.
_LOCKSTEP_SECONDS, _STOPPING_SECONDS, _WARNING_SECONDS = 0.001, 0.02, 0.1


def require_checker(options: CollectOptions) -> None:
    """Make sure that a run can be checked while it goes on, if that is asked for.

    Raises:
        ConfigError: something that it needs is missing, or has no sense without it.
    """
    if not options.checks:
        without_sense = {
            "--lockstep": options.lockstep,
            "--on-violation stop": options.on_violation != "warn",
            "--baseline": options.baseline is not None,
        }
        for option in (option for option, is_given in without_sense.items() if is_given):
            raise ConfigError(f"{option}: nothing is checked while the program runs; add --check")
        return
    if not options.invariants:
        raise ConfigError("--check: needs the invariants to check; name them with --invariants")
    if options.lockstep and options.on_violation != "stop":
        raise ConfigError(
            "--lockstep: the training would wait for verdicts that stop nothing; add "
            "--on-violation stop"
        )
    if options.baseline is not None:
        if not options.baseline.is_file():
            raise ConfigError(f"--baseline: there is no file {options.baseline}")
        read_suppressions(options.baseline)
    _installed()


def checker_command(options: CollectOptions, output: LiveOutput, run_id: str) -> list[str]:
    """Return the command line of the process that checks a run.

    Raises:
        ConfigError: it is not installed.
    """
    baseline = () if options.baseline is None else ("--baseline", str(options.baseline))
    poll = _STOPPING_SECONDS if options.on_violation == "stop" else _WARNING_SECONDS
    return [
        _installed(),
        *("-f", str(output.traces), "--run-id", run_id),
        *("-i", *(str(path) for path in options.invariants)),
        *baseline,
        *("-o", str(output.results), "--progress", str(output.progress), "--until-eof"),
        *("--poll-seconds", str(_LOCKSTEP_SECONDS if options.lockstep else poll)),
    ]


def _installed() -> str:
    """Return where the command is: beside this Python, or on PATH."""
    beside = shutil.which(_CHECKER, path=sysconfig.get_path("scripts"))
    found = beside or shutil.which(_CHECKER)
    if found is None:
        raise ConfigError(
            f"--check: {_CHECKER} is not installed: pip install 'traincheck-launcher[check]'"
        )
    return found
