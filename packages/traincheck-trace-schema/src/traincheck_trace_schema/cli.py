"""What all commands of TrainCheck share: options with many values, `--version`, errors, exit codes.

A command's function may return its exit code; `None` is 0. Everything heavy is imported inside the
functions that need it, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

import click

from traincheck_trace_schema.errors import (
    DEBUG,
    EXIT_CLEAN,
    EXIT_UNUSABLE,
    ConfigError,
    TraincheckError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_Function = TypeVar("_Function", bound=Callable[..., Any])

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


class ManyValues(click.Option):
    """An option that takes the values up to the next option or `--`, and may be repeated.

    Works in commands of class `TraincheckCommand`; gives a tuple.
    """

    def __init__(self, param_decls: Sequence[str], **attrs: Any) -> None:
        super().__init__(param_decls, multiple=True, **attrs)

    def make_metavar(self, ctx: click.Context) -> str:
        """Show that more than one value may follow."""
        return f"{super().make_metavar(ctx)}..."


class _Standalone(click.Command):
    """Turns what a command can end with into a message and an exit code, at one place."""

    def __init__(self, name: str | None, **attrs: Any) -> None:
        super().__init__(name, **attrs)
        self.params.append(_version_option())

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002  click's signature
        **extra: Any,
    ) -> Any:
        """Run the command and, unless `standalone_mode` is off, exit."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except TraincheckError as error:
            _end(str(error))
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(EXIT_UNUSABLE)
        except click.UsageError as error:
            _end(f"{error.format_message().rstrip('.')}{_hint(error)}")
        except click.ClickException as error:
            _end(error.format_message())
        except OSError as error:
            _end(_told(error))
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(EXIT_INTERRUPTED)
        except Exception as error:  # noqa: BLE001  Python would exit with 1, which means violations
            if os.environ.get(DEBUG):
                traceback.print_exc()
            _end(
                f"this is a fault of TrainCheck or of a plugin: {type(error).__name__}: {error}; "
                f"set {DEBUG}=1 for the traceback"
            )
        sys.exit(code if isinstance(code, int) else EXIT_CLEAN)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command's function; a reader that went away (`| head`) is no error."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:  # it may have been closed by who started us
                sys.stdout.flush()
        except BrokenPipeError:
            _silence(sys.stdout)
            ctx.exit(EXIT_BROKEN_PIPE)
        return result


class TraincheckCommand(_Standalone):
    """A command of TrainCheck."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spell `-f A B C` as `-f A -f B -f C`, then parse as click does."""
        return super().parse_args(ctx, list(self._spell_out(ctx, args)))

    def _spell_out(self, ctx: click.Context, args: Sequence[str]) -> Iterator[str]:
        options = {
            name: param
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            for name in (*param.opts, *param.secondary_opts)
        }
        at = 0
        while at < len(args) and args[at] != "--":
            name, equals, value = args[at].partition("=")
            option = options.get(name)
            at += 1
            if isinstance(option, ManyValues):
                end = _end_of_values(args, at)
                values = [*([value] if equals else []), *args[at:end]]
                if not values:
                    raise click.BadOptionUsage(name, f"Option {name!r} needs a value.", ctx)
                for each in values:
                    yield from (name, each)
                at = end
            else:
                yield args[at - 1]
                taken = option.nargs if option and not equals and _takes_value(option) else 0
                yield from args[at : at + taken]
                at += taken
        yield from args[at:]


class TraincheckGroup(_Standalone, click.Group):
    """A command with subcommands."""

    command_class = TraincheckCommand


def say(line: str = "") -> None:
    """Print a line; names in documents may hold anything, so it can't steer the terminal."""
    click.echo(_printable(line))


def note(what: str) -> None:
    """Print to stderr what may be good to know."""
    _tell(f"note: {what}")


def warn(what: str) -> None:
    """Print to stderr what makes a result less than it seems."""
    _tell(f"warning: {what}")


def fail(what: str) -> None:
    """Print to stderr what went wrong."""
    _tell(f"error: {what}")


def _tell(line: str) -> None:
    # If nobody reads it, that is no reason to leave undone what was asked for.
    try:
        click.echo(_printable(line), err=True)
    except BrokenPipeError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Let what is written to a stream go nowhere, also what the interpreter flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _printable(text: str) -> str:
    """Escape what is no character to read; colours, which are ours, stay."""
    if text.isprintable():
        return text
    return "".join(
        part if _COLOUR.fullmatch(part) else "".join(map(_escaped, part))
        for part in _COLOUR.split(text)
    )


def _escaped(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def trace_options(function: _Function) -> _Function:
    """Add the options of reading traces: `trace_folders`, `traces` and `strict`."""
    what = "Folders that traincheck-collect wrote; folders of one run are merged."
    return _trace_options(function, what, is_there=True)


def growing_trace_options(function: _Function) -> _Function:
    """Add the same for a trace that grows, or has not begun."""
    what = "Folders that traincheck-collect writes, all of one run; they need not be there yet."
    return _trace_options(function, what, is_there=False)


def _trace_options(function: _Function, what: str, *, is_there: bool) -> _Function:
    folders = click.option(
        "-f",
        "--trace-folders",
        cls=ManyValues,
        type=click.Path(exists=is_there, file_okay=False, path_type=Path),
        help=what,
    )
    files = click.option(
        "-t",
        "--traces",
        cls=ManyValues,
        type=click.Path(exists=is_there, path_type=Path),
        help="Single trace files.",
    )
    strict = click.option(
        "--strict", is_flag=True, help="Refuse a trace at the first line that is no record."
    )
    return folders(files(strict(function)))


def debug_option(function: _Function) -> _Function:
    """Add `-d`, which shows the traceback of a fault of ours, as the environment variable does."""
    return click.option(
        "-d",
        "--debug",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=set_debug,
        help="Show the traceback where TrainCheck, or a plugin, has a fault.",
    )(function)


def set_debug(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001  click's signature
    """Show tracebacks of our faults if it is asked for, also in processes that we start."""
    if is_asked and not ctx.resilient_parsing:
        os.environ[DEBUG] = "1"


def given_traces(folders: Sequence[Path], files: Sequence[Path]) -> list[Path]:
    """Return what the options of `trace_options` name.

    Raises:
        ConfigError: They name nothing.
    """
    if not folders and not files:
        raise ConfigError("No trace is given; name folders with -f or trace files with -t")
    return [*folders, *files]


def _end_of_values(args: Sequence[str], start: int) -> int:
    """Return the index of the next option; `-` alone is a value."""
    for at in range(start, len(args)):
        if args[at].startswith("-") and args[at] != "-":
            return at
    return len(args)


def _told(error: OSError) -> str:
    """Say what the system refused; without a file, it is what a command prints to."""
    place = f"{error.filename}: " if error.filename is not None else "the output: "
    return f"{place}{error.strerror or error}"


def _takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def _version_option() -> click.Option:
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_versions,
        help="Show the installed packages of TrainCheck and exit.",
    )


def _show_versions(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001  click's signature
    if not is_asked or ctx.resilient_parsing:
        return
    from importlib.metadata import distributions  # noqa: PLC0415  30 ms that other calls save

    installed = {dist.name: dist.version for dist in distributions()}
    for name in sorted(installed):
        if name.startswith("traincheck-"):
            click.echo(f"{name} {installed[name]}")
    ctx.exit()


def _hint(error: click.UsageError) -> str:
    return f" (see '{error.ctx.command_path} --help')" if error.ctx else ""


def _end(message: str) -> NoReturn:
    fail(message)
    sys.exit(EXIT_UNUSABLE)
