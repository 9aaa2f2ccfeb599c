from __future__ import annotations

import importlib.metadata
import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner, Result

from traincheck_trace_schema.cli import TraincheckCommand
from traincheck_trace_schema.umbrella import ENTRY_POINTS, main


@click.command(cls=TraincheckCommand, help="Look at things.")
@click.option("-n", default=0)
def look(n: int) -> int:
    return n


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Install commands: a dictionary from name to `module:object`."""
    commands: dict[str, str] = {}

    def entry_points(*, group: str) -> EntryPoints:
        assert group == ENTRY_POINTS
        return EntryPoints(EntryPoint(name, value, group) for name, value in commands.items())

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setitem(sys.modules, "look_module", SimpleNamespace(look=look, three=3))
    return commands


def _run(*args: str) -> Result:
    return CliRunner().invoke(main, args, prog_name="traincheck")


def test_a_command_of_an_installed_package_runs(installed: dict[str, str]) -> None:
    """A subcommand gets its options, and its exit code is that of `traincheck`."""
    installed["look"] = "look_module:look"

    assert _run("look", "-n", "3").exit_code == 3


def test_help_lists_the_installed_commands(installed: dict[str, str]) -> None:
    """Each command is listed with the first line of its help."""
    installed["look"] = "look_module:look"

    assert "look  Look at things." in _run("--help").stdout


@pytest.mark.parametrize(
    ("value", "reason"),
    [("no_such_module:x", "No module named 'no_such_module'"), ("look_module:nope", "nope")],
)
def test_a_broken_command_spares_the_others(
    installed: dict[str, str], value: str, reason: str
) -> None:
    """Help still works and says what is wrong; only calling the broken one fails, in one line."""
    installed.update(look="look_module:look", broken=value)

    overview, call = _run("--help"), _run("broken")

    assert overview.exit_code == 0
    assert "look    Look at things." in overview.stdout
    assert "cannot be loaded" in overview.stdout
    assert call.exit_code == 2
    assert call.stderr.startswith("error: Command 'broken'")
    assert reason in call.stderr
    assert call.stderr.count("\n") == 1


def test_an_entry_point_that_is_no_command_is_refused(installed: dict[str, str]) -> None:
    """What an entry point names must be a click command."""
    installed["three"] = "look_module:three"

    result = _run("three")

    assert (result.exit_code, "is 3, not a click command" in result.stderr) == (2, True)


def test_an_unknown_command_is_refused(installed: dict[str, str]) -> None:
    """A name that nobody offers is a usage error."""
    installed["look"] = "look_module:look"

    result = _run("lok")

    assert (result.exit_code, "No such command 'lok'" in result.stderr) == (2, True)
