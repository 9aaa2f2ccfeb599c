from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from traincheck_trace_schema.cli import ManyValues, TraincheckCommand, say
from traincheck_trace_schema.errors import ConfigError


@click.command(cls=TraincheckCommand)
@click.option("-f", "--folder", "folders", cls=ManyValues)
@click.option("-o", "--out")
@click.option("-v", "is_verbose", is_flag=True)
@click.argument("rest", nargs=-1)
def _gather(**given: Any) -> None:
    click.echo(repr({key: value for key, value in given.items() if value}))


def _run(command: click.Command, *args: str) -> Result:
    return CliRunner().invoke(command, args, prog_name="traincheck-test")


def _gathered(*args: str) -> dict[str, Any]:
    result = _run(_gather, *args)
    assert result.exit_code == 0, result.stderr
    return dict(ast.literal_eval(result.stdout))


def _command(function: Any) -> click.Command:
    return click.command(cls=TraincheckCommand)(function)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-f", "a", "b", "c"], {"folders": ("a", "b", "c")}),
        (["-f", "a", "-v", "-f", "b", "c"], {"folders": ("a", "b", "c"), "is_verbose": True}),
        (["--folder=a", "b", "-o", "x"], {"folders": ("a", "b"), "out": "x"}),
        (["--folder", "a", "--", "-f", "b"], {"folders": ("a",), "rest": ("-f", "b")}),
        (["x", "-f", "a", "-"], {"rest": ("x",), "folders": ("a", "-")}),
        (["-o", "-f", "x"], {"out": "-f", "rest": ("x",)}),
        (["--out=x", "-f", "a=b"], {"out": "x", "folders": ("a=b",)}),
        (["--", "-f", "a"], {"rest": ("-f", "a")}),
        (["-f", ""], {"folders": ("",)}),
    ],
)
def test_an_option_takes_the_values_up_to_the_next_option(
    args: list[str], expected: dict[str, Any]
) -> None:
    """Values end at an option or at `--`; what follows `--`, and other options' values, stay."""
    assert _gathered(*args) == expected


@pytest.mark.parametrize("args", [["-f"], ["-f", "-v"], ["-f", "--", "a"]])
def test_an_option_without_values_is_refused(args: list[str]) -> None:
    """A missing value is told in one line that names the option."""
    result = _run(_gather, *args)

    assert result.exit_code == 2
    assert result.stderr == ("error: Option '-f' needs a value (see 'traincheck-test --help')\n")


def test_usage_errors_are_one_line() -> None:
    """An unknown option: one line, exit code 2."""
    result = _run(_gather, "--nope")

    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: No such option")


def test_our_errors_are_told_without_a_traceback() -> None:
    """A TraincheckError ends the command with its message and exit code 2."""

    @_command
    def fail() -> None:
        raise ConfigError("x.json: is no plan")

    result = _run(fail)

    assert (result.exit_code, result.stderr) == (2, "error: x.json: is no plan\n")


def test_a_file_that_click_cannot_open_is_unusable_input() -> None:
    """Exit code 1 means violations, so click's own 1 becomes 2."""

    @_command
    def fail() -> None:
        raise click.FileError("x.json", "gone")

    assert _run(fail).exit_code == 2


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_what_a_command_returns_is_its_exit_code(returned: int | None, code: int) -> None:
    """A command's function may return its exit code."""

    @_command
    def end() -> int | None:
        return returned

    assert _run(end).exit_code == code


def test_an_interrupt_is_tidy() -> None:
    """Ctrl-C ends with 130 and without a traceback."""

    @_command
    def wait() -> None:
        raise KeyboardInterrupt

    result = _run(wait)

    assert result.exit_code == 130
    assert "Traceback" not in result.stderr


def test_a_bug_is_told_in_a_line_and_is_no_violation(monkeypatch) -> None:
    """Python would exit with 1, which means violations; the traceback is there for the asking."""

    @_command
    def fail() -> None:
        raise ZeroDivisionError("by us")

    plain = _run(fail)
    monkeypatch.setenv("TRAINCHECK_DEBUG", "1")
    asked = _run(fail)

    assert (plain.exit_code, asked.exit_code) == (2, 2)
    assert plain.stderr.count("\n") == 1
    assert "fault of TrainCheck" in plain.stderr
    assert "ZeroDivisionError: by us" in plain.stderr
    assert "Traceback" in asked.stderr


def test_a_reader_that_went_away_is_no_error() -> None:
    """Output into a closed pipe, as `| head` makes it, prints nothing on stderr."""
    script = (
        "import click\n"
        "from traincheck_trace_schema.cli import TraincheckCommand\n"
        "@click.command(cls=TraincheckCommand)\n"
        "def main():\n"
        "    click.echo('x' * 100_000)\n"
        "main()\n"
    )
    read_end, write_end = os.pipe()
    os.close(read_end)

    done = subprocess.run(
        [sys.executable, "-c", script], stdout=write_end, stderr=subprocess.PIPE, check=False
    )
    os.close(write_end)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_document_can_not_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Escapes, line ends and what is no text are shown as such; colours of ours stay."""
    say("a\x1b]0;title\x07b\nc\udc80 \N{SNOWMAN}")

    assert capsys.readouterr().out == "a\\x1b]0;title\\x07b\\nc\\udc80 \N{SNOWMAN}\n"


def test_an_output_that_can_not_be_written_is_no_fault_of_ours() -> None:
    """A full disk behind `> file` is told for what it is."""
    with open("/dev/full", "wb") as full:  # noqa: PTH123  no file of a folder
        result = subprocess.run(
            [Path(sys.executable).parent / "traincheck-schema", "schema", "trace"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert result.returncode == 2
    assert result.stderr.startswith(b"error: the output: No space left on device\n")


def test_version_lists_the_installed_packages() -> None:
    """`--version` names each distribution of TrainCheck once."""
    result = _run(_gather, "--version")

    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert "traincheck-trace-schema" in names
    assert len(names) == len(set(names))


def test_help_says_that_several_values_may_follow() -> None:
    """The help text shows an ellipsis after the value."""
    assert "-f, --folder TEXT..." in _run(_gather, "--help").stdout


def test_a_command_line_module_imports_nothing_heavy() -> None:
    """Without cattrs, numpy and importlib.metadata, `--help` answers at once."""
    script = (
        "import sys, traincheck_trace_schema.umbrella\n"
        "print({'cattrs', 'numpy', 'ujson', 'importlib.metadata'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout == b"set()\n"
