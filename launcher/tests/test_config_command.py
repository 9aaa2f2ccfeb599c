"""`traincheck config`: the file that it writes, and what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from traincheck_launcher.commands.collect import collect
from traincheck_launcher.commands.config import config

_KEY = re.compile(r"^#?(\w+): ")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    """Run `traincheck config`."""
    return CliRunner().invoke(config, arguments)


def shown(*arguments: str) -> list[list[str]]:
    """Return the rows of `traincheck config show`."""
    result = run("show", *arguments)
    assert result.exit_code == 0, result.stderr
    return [re.split(r"\s{2,}", line) for line in result.stdout.splitlines()]


def keys_of_options() -> set[str]:
    """Return the keys that the long options of traincheck-collect stand for."""
    longs = [[n for n in param.opts if n.startswith("--")] for param in collect.params]
    return {names[0].removeprefix("--").replace("-", "_") for names in longs}


def test_the_file_has_every_option_once():
    """Those of the command itself, and those that do nothing, aside."""
    left_out = {"config", "use_config", "version"}
    no_effect = {"disable_scan_proxy_in_args", "use_torch_compile", "profiling"}

    assert run("init").exit_code == 0

    lines = Path("traincheck.yml").read_text().splitlines()
    keys = [match[1] for line in lines if (match := _KEY.match(line))]
    assert len(keys) == len(set(keys))
    assert set(keys) == (keys_of_options() | {"arguments"}) - left_out - no_effect


def test_the_file_says_nothing_until_a_line_is_uncommented():
    """As it is, all values are defaults; uncommented, they are the same, and come from the file."""
    run("init")
    path = Path("traincheck.yml")
    as_it_is = shown("--use-config")
    path.write_text(re.sub(r"(?m)^#(\w+:)", r"\1", path.read_text()))

    uncommented = shown("--use-config")

    assert as_it_is == shown()
    assert [row[:2] for row in uncommented] == [row[:2] for row in as_it_is]
    by_file = {row[0] for row in uncommented if row[2].startswith("traincheck.yml:")}
    assert by_file == {row[0] for row in as_it_is if row[1] != "null"}


def test_a_command_line_becomes_a_file():
    """What is given is set, and paths mean the same from there."""
    typed = ("-p", "src/train.py", "--models-to-track", "a", "b", "--gzip")
    typed += ("--sampling-interval", "4", "-i", "/x.json", "y.json", "--nnodes", "1:2")
    arguments = ("--", "--name", "a: b #", "yes")
    Path("conf").mkdir()

    result = run("init", "-o", "conf/t.yml", *typed, *arguments)

    assert result.stdout.startswith("conf/t.yml is written;")
    rows = {key: (value, source) for key, value, source in shown("--config", "conf/t.yml")}
    text = {key: value for key, (value, source) in rows.items() if source != "default"}
    assert text == {
        "pyscript": "conf/../src/train.py",
        "models_to_track": "[a, b]",
        "gzip": "true",
        "sampling_interval": "4",
        "invariants": "[/x.json, conf/../y.json]",
        "nnodes": "'1:2'",
        "arguments": "[--name, 'a: b #', 'yes']",
    }


def test_an_old_file_is_written_anew():
    """What it sets stays set."""
    Path("old.yml").write_text("gzip: true\narguments: [3]\n")

    run("init", "--config", "old.yml", "-o", "new.yml")

    lines = Path("new.yml").read_text().splitlines()
    assert "gzip: true" in lines
    assert "arguments: ['3']" in lines


def test_a_file_that_is_there_is_left_alone():
    """The message names it."""
    Path("traincheck.yml").write_text("gzip: true\n")

    result = run("init")

    assert result.exit_code == 2
    assert result.stderr.startswith("error: --output: traincheck.yml is there already;")
    assert Path("traincheck.yml").read_text() == "gzip: true\n"


def test_a_folder_that_is_not_there_is_told():
    """In one line."""
    result = run("init", "-o", "none/t.yml")

    assert result.exit_code == 2
    assert result.stderr.startswith("error: --output: none/t.yml cannot be written: No such file")


def test_a_file_that_is_not_used_is_told():
    """`traincheck-collect` would not use it either."""
    Path("traincheck.yml").write_text("gzip: true\n")

    result = run("show")

    assert ["gzip", "false", "default"] in [
        re.split(r"\s{2,}", line) for line in result.stdout.splitlines()
    ]
    assert result.stderr == "note: traincheck.yml is here and not used; --use-config does\n"


def test_every_switch_can_be_switched_off():
    """A file may switch it on."""
    flags = [
        param for param in collect.params if param.is_flag and param.name not in _OF_THE_COMMAND
    ]

    assert len(flags) > 10
    assert [param.name for param in flags if not param.secondary_opts] == []
    taken = [name for param in collect.params for name in (*param.opts, *param.secondary_opts)]
    assert len(taken) == len(set(taken))


_OF_THE_COMMAND = {"use_config", "version"}


def test_the_help_shows_each_switch_once():
    """What undoes it would double its length."""
    result = CliRunner().invoke(collect, ["--help"])

    assert "--gzip " in result.stdout
    assert "--no-gzip" not in result.stdout
    assert "--standalone " in result.stdout
    assert "--no-standalone" not in result.stdout
