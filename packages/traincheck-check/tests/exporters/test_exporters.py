"""What all exporters have in common: extras, imported late, and in both commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from traincheck_check.commands.check import check
from traincheck_check.commands.onlinecheck import onlinecheck

if TYPE_CHECKING:
    from conftest import Check

LIBRARIES = ("mlflow", "opentelemetry", "tensorboard", "wandb")


def test_help_imports_none_of_the_libraries() -> None:
    """Some take seconds, and none needs to be installed; the options are there all the same."""
    code = (
        "import sys; from traincheck_check.commands.check import check; "
        "check(['--help'], standalone_mode=False); "
        f"print([name for name in {LIBRARIES} if name in sys.modules], "
        "'xml' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines()[-1] == "[] False"
    for option in ("--junit", "--report-wandb", "--report-mlflow", "--report-tensorboard"):
        assert option in done.stdout


@pytest.mark.parametrize("command", [check, onlinecheck])
def test_both_commands_have_the_options(command: object) -> None:
    """What is told of a finished run can be told of one that goes on."""
    told = CliRunner().invoke(command, ["--help"]).stdout  # type: ignore[arg-type]  both are

    for option in ("--junit", "--report-otel", "--wandb-run-id", "--mlflow-experiment"):
        assert option in told


@pytest.mark.parametrize(
    ("library", "args"),
    [
        ("wandb", ["--report-wandb"]),
        ("mlflow.tracking", ["--report-mlflow"]),
        ("tensorboard.compat.proto.event_pb2", ["--report-tensorboard", "tb"]),
        ("opentelemetry.sdk.metrics", ["--report-otel"]),
    ],
)
def test_a_library_that_is_not_installed_is_told_at_once(
    run_check: Check,
    bad_run: Path,
    library: str,
    args: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is checked, in one line that says what to install."""
    monkeypatch.setitem(sys.modules, library, None)

    result = run_check("-f", bad_run, *args)

    assert result.exit_code == 2, result.output
    extra = args[0].removeprefix("--report-")
    assert f"pip install 'traincheck-check[{extra}]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not Path("results/violations_summary.json").exists()


def test_options_without_effect_are_told(run_check: Check, bad_run: Path) -> None:
    """A project alone sends nothing anywhere."""
    result = run_check("-f", bad_run, "--wandb-project", "digits", "--mlflow-run-name", "nightly")

    assert "warning: --wandb-project has no effect without --report-wandb" in result.stderr
    assert "warning: --mlflow-run-name has no effect without --report-mlflow" in result.stderr


def test_a_run_that_is_followed_is_told(bad_run: Path, claims_file: Path) -> None:
    """The command that follows runs feeds the same exporters."""
    result = CliRunner().invoke(
        onlinecheck,
        [
            *("-f", str(bad_run), "-i", str(claims_file), "-o", "results"),
            *("--junit", "junit.xml"),
        ],
    )

    assert result.exit_code == 1, result.output
    assert 'failures="1"' in Path("junit.xml").read_text()
