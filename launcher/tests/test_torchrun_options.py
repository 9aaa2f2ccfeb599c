"""All long options of torchrun are passed on to it, in either spelling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from traincheck_launcher.commands.collect import collect
from traincheck_launcher.starting.torchrun_options import TORCHRUN_OPTIONS

if TYPE_CHECKING:
    from traincheck_launcher.options import CollectOptions

# The launcher decides what a rank runs, and has a --module of its own.
NOT_PASSED_ON = {"help", "module", "no-python", "run-path"}


@pytest.mark.torch
def test_they_are_those_of_torchrun():
    """Each is known here, and takes a value if it does there."""
    from torch.distributed.run import get_args_parser  # noqa: PLC0415  torch is an extra

    theirs = {
        max(action.option_strings, key=len).lstrip("-").replace("_", "-"): action.nargs != 0
        for action in get_args_parser()._actions
        if action.option_strings
    }

    ours = {option.name: option.metavar is not None for option in TORCHRUN_OPTIONS}
    assert ours == {name: takes for name, takes in theirs.items() if name not in NOT_PASSED_ON}


def given(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> CollectOptions:
    """Return what is made of a command line, instead of running it."""
    seen: list[CollectOptions] = []

    def note(options: CollectOptions, command: tuple[str, ...]) -> int:
        del command
        seen.append(options)
        return 0

    monkeypatch.setattr("traincheck_launcher.running.collection.collect", note)
    result = CliRunner().invoke(collect, ["-p", "train.py", *arguments])
    assert result.exit_code == 0, result.stderr
    return seen[0]


def test_each_is_passed_on_as_it_is_given(monkeypatch):
    """With hyphens, underscores or an equals sign; what stands after -- is the program's."""
    options = given(
        monkeypatch,
        *("--nproc_per_node", "2", "--standalone", "--rdzv-conf=a=1,b=2", "--tee", "0:3,1:0"),
        *("--local_ranks_filter=0", "--virtual-local-rank", "--", "--nnodes", "3"),
    )

    assert options.torchrun == (
        *("--nproc-per-node=2", "--standalone", "--rdzv-conf=a=1,b=2", "--tee=0:3,1:0"),
        *("--local-ranks-filter=0", "--virtual-local-rank"),
    )
    assert options.arguments == ("--nnodes", "3")


@pytest.mark.parametrize("option", TORCHRUN_OPTIONS, ids=lambda option: option.name)
def test_none_is_lost(monkeypatch, option):
    """Every option of the table reaches torchrun, in both spellings."""
    value = [] if option.metavar is None else ["x"]
    passed_on = f"--{option.name}" if option.metavar is None else f"--{option.name}=x"

    for spelled in (f"--{option.name}", f"--{option.key}"):
        assert given(monkeypatch, spelled, *value).torchrun == (passed_on,)


def test_the_help_shows_one_spelling():
    """Those that are rare are left to the help of torchrun."""
    told = CliRunner().invoke(collect, ["--help"]).stdout

    assert "--nproc-per-node N" in told
    assert "--nproc_per_node" not in told
    assert "--numa-binding" not in told


def test_without_any_torchrun_is_not_called(monkeypatch):
    """The script runs as it is."""
    assert given(monkeypatch).torchrun == ()
    assert given(monkeypatch).pyscript == Path("train.py")
