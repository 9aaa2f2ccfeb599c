"""Chooses the way in which the program is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_launcher.starting.python import Python
from traincheck_launcher.starting.shell_script import ShellScript
from traincheck_launcher.starting.torchrun import Torchrun
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from traincheck_launcher.options import CollectOptions
    from traincheck_launcher.starting.way import Way


def way_of(options: CollectOptions) -> Way:
    """Return the way that the options ask for.

    Raises:
        ConfigError: they ask for more than one.
    """
    if options.shscript is not None:
        if options.torchrun:
            raise ConfigError(
                f"{options.torchrun[0].partition('=')[0]}: is for torchrun, which starts a Python "
                "script; give it to the torchrun in the shell script, or leave out --shscript"
            )
        return ShellScript(options.shscript, options.pyscript, options.arguments)
    program = Python(options.pyscript, options.module, options.arguments)
    return Torchrun(program, options.torchrun) if options.torchrun else program
