"""Config files: what they may say, what wins, and what is said of those that can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from traincheck_launcher.commands.collect import collect
from traincheck_launcher.commands.config import config
from traincheck_launcher.commands.run import run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; config files are in `conf`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAINCHECK_DEBUG", "")  # an option sets it; this puts it back
    (tmp_path / "conf").mkdir()
    return tmp_path


def shown(text: str | bytes, *arguments: str) -> dict[str, tuple[str, str]]:
    """Return what would be used with a file, and where it comes from; without the defaults."""
    write(text)
    result = CliRunner().invoke(config, ["show", "--config", "conf/t.yml", *arguments])
    assert result.exit_code == 0, result.stderr
    rows = (line.split(None, 1) for line in result.stdout.splitlines())
    values = {key: tuple(rest.rsplit("  ", 1)) for key, rest in rows}
    return {
        key: (value.strip(), source)
        for key, (value, source) in values.items()
        if source != "default"
    }


def write(text: str | bytes) -> None:
    """Write the config file."""
    Path("conf/t.yml").write_bytes(text if isinstance(text, bytes) else text.encode())


def error(text: str | bytes, *arguments: str) -> str:
    """Return the one line of an error of traincheck-collect."""
    write(text)
    result = CliRunner().invoke(collect, ["--use-config", "--config", "conf/t.yml", *arguments])
    assert result.exit_code == 2
    assert result.stdout == ""
    line, end = result.stderr.split("\n")
    assert end == ""
    return line


def test_all_that_users_know_may_stand_in_a_file():
    """The keys of the example in the documentation; paths are as seen from the file."""
    values = shown(
        "pyscript: ./train.py\nshscript: ../run.sh\nmodules_to_instr:\n  - torch\n"
        "models_to_track:\n  - model\nmodel_tracker_style: subclass\ncopy_all_files: true\n"
        "output_dir: /data/trace\n"
    )

    assert values == {
        "pyscript": ("conf/train.py", "conf/t.yml:1"),
        "shscript": ("conf/../run.sh", "conf/t.yml:2"),
        "modules_to_instr": ("[torch]", "conf/t.yml:3"),
        "models_to_track": ("[model]", "conf/t.yml:5"),
        "model_tracker_style": ("subclass", "conf/t.yml:7"),
        "copy_all_files": ("true", "conf/t.yml:8"),
        "output_dir": ("/data/trace", "conf/t.yml:9"),
    }


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("nnodes: 1:2", "nnodes", "'1:2'"),  # which YAML takes for 62
        ("run_id: 1_000", "run_id", "'1_000'"),
        ("max_trace_size: 500MB", "max_trace_size", "500MB"),
        ("overhead_budget: 5", "overhead_budget", "5"),
        ("API_dump_stack_trace: on", "API_dump_stack_trace", "true"),
        ("models_to_track: model", "models_to_track", "[model]"),
        ("invariants: [a.json, /b.json]", "invariants", "[conf/a.json, /b.json]"),
        ("log_dir: logs", "log_dir", "conf/logs"),
        ("arguments: [--epochs, 3, true]", "arguments", "[--epochs, '3', 'true']"),
        ("\ufeffrole: caf\xe9", "role", "caf\xe9"),
        ("debug_mode: true", "debug_mode", "true"),
    ],
)
def test_values_are_taken_as_they_are_typed(text, key, value):
    """What a text means is for the option to say, not for YAML."""
    assert shown(text) == {key: (value, "conf/t.yml:1")}


def test_a_path_may_begin_at_home(monkeypatch):
    """As a shell has it on a command line."""
    monkeypatch.setenv("HOME", "/home/me")

    assert shown("output_dir: ~/x")["output_dir"] == ("/home/me/x", "conf/t.yml:1")


@pytest.mark.parametrize("text", ["", "# nothing\n", "pyscript: null\n", "arguments: ~\n"])
def test_what_is_not_set_stays_at_its_default(text):
    """An empty file is one; so is null."""
    assert shown(text) == {}


def test_the_command_line_wins():
    """Values, lists, switches in both directions, and the arguments of the program."""
    text = (
        "sampling_interval: 4\nmodels_to_track: [a, b]\ngzip: true\narguments: [1]\n"
        "no_auto_var_instr: true\nwarm_up_steps: 2\n"
    )
    typed = ("--sampling-interval", "8", "--models-to-track", "c", "--no-gzip")

    values = shown(text, *typed, "--auto-var-instr", "--", "2")

    assert values == {
        "sampling_interval": ("8", "command line"),
        "models_to_track": ("[c]", "command line"),
        "gzip": ("false", "command line"),
        "no_auto_var_instr": ("false", "command line"),
        "arguments": ("['2']", "command line"),
        "warm_up_steps": ("2", "conf/t.yml:6"),
    }


@pytest.mark.parametrize(
    ("text", "typed", "key"),
    [("pyscript: a.py", "-m", "module"), ("module: a", "-p", "pyscript")],
)
def test_a_program_that_is_typed_replaces_the_one_of_the_file(text, typed, key):
    """Whichever way each is named."""
    assert shown(text, typed, "b") == {key: ("b", "command line")}


def test_a_switch_that_is_switched_off_wins_too():
    """`--no-x` after the file, and `--x` after `x: false`."""
    assert shown("gzip: false", "--gzip") == {"gzip": ("true", "command line")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", ":1: must hold keys with values, as 'pyscript: train.py', not a list"),
        ("pyscript", ":1: must hold keys with values, as 'pyscript: train.py', not 'pyscript'"),
        ("!!python/object:os.x {}", ":1: must hold keys with values, as 'pyscript: train.py', not"),
        ("gzip: true\n\toutput_dir: x", ":2: a tab can't stand here in YAML; indent with spaces"),
        ("a: [1\n", ":2: is no YAML: expected ',' or ']'"),
        ("a: 'x\n", ":2: is no YAML: found unexpected end of stream while scanning a quoted"),
        ("role: @x", ":1: is no YAML: found character '@' that cannot start any token"),
        ("role: a: b", ":1: is no YAML: mapping values are not allowed here; put the value in"),
        ("gzip: true\n---\ngzip: true\n", ":2: a second document begins; keep one, without ---"),
        ("gzip: true\nrole: \x07\n", ":2: holds the control character '\\x07'"),
        (b"gzip: true\nrole: caf\xe9\n", ":2: is not UTF-8; save it as UTF-8"),
        ("role: " + "[" * 20_000, ": is nested too deep; values are one level deep"),
        ("<<: {gzip: true}", ":1: '<<' is not read; write the keys out"),
        ("role: &a [*a]", ":1: role can't be a list"),
        ("role: *a", ":1: is no YAML: found undefined alias 'a'"),
        ("? [a]\n: b", ":1: a key must be a name, not a list"),
        ("gzip: true\ngzip: true", ":2: gzip stands in line 1 already; keep one of them"),
        ("output-dir: x", ":1: 'output-dir' is spelled with underscores: output_dir"),
        ("ouput_dir: x", ":1: there is no option 'ouput_dir'; did you mean output_dir?"),
        ("ouput-dir: x", ":1: there is no option 'ouput-dir'; did you mean output_dir?"),
        ("api_dump_stack_trace: on", ":1: there is no option 'api_dump_stack_trace'; did you mean"),
        ("GZIP: true", ":1: there is no option 'GZIP'; did you mean gzip?"),
        ("zzz: x", ":1: there is no option 'zzz'; 'traincheck config init' writes a file with all"),
        ("config: x", ":1: 'config' is for the command line: it names this file"),
        ("use_config: true", ":1: 'use_config' is for the command line: it says that this file"),
        (
            "enable_C_level_observer: true",
            ":1: 'enable_C_level_observer' belongs to TrainCheck 0.1",
        ),
        (
            "profiling: true",
            ":1: profiling: nothing is profiled; put a profiler around the command",
        ),
        ("pyscript: [a, b]", ":1: pyscript takes one value, not a list"),
        ("pyscript: {a: b}", ":1: pyscript can't be a mapping"),
        ("pyscript: !!python/name:os.x a", ":1: pyscript can't be of the type python/name:os.x"),
        ("pyscript:\n", ":1: pyscript has no value; for its default, write null or take the line"),
        ("pyscript: ''", ":1: pyscript needs a path, not nothing"),
        ("pyscript: true", ":1: pyscript needs a path, not true; a name that is called so goes"),
        ("models_to_track:\n- a\n- no\n", ":3: models_to_track needs a value, not no;"),
        ("models_to_track: [[a]]", ":1: models_to_track can't be a list"),
        ("gzip: 1", ":1: gzip must be true or false, not '1'"),
        ("gzip: 'true'", ":1: gzip must be true or false, not 'true'"),
        ("sampling_interval: 2.5", ":1: sampling_interval: '2.5' is not a valid integer"),
        ("\nsampling_interval: 0", ":2: sampling_interval: 0 is not in the range x>=1"),
        ("model_tracker_style: prxy", ":1: model_tracker_style: 'prxy' is not one of 'subclass',"),
        ("max_trace_size: 5 apples", ":1: max_trace_size: '5 apples' is no size; write it as"),
        ("arguments: --epochs 3", ":1: arguments must be a list, as [--epochs, 3]: one item"),
        ("arguments: {a: b}", ":1: arguments can't be a mapping"),
    ],
)
def test_what_cannot_be_used_is_told_with_file_and_line(text, message):
    """One line, before anything is looked at or run."""
    assert error(text).startswith(f"error: conf/t.yml{message}")


def test_aliases_do_not_grow():
    """Nine levels of nine would be 387 million values."""
    levels = [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]

    assert "can't be a list" in error("\n".join(["k0: &a0 [x]", *levels]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "none.yml"], "--config: there is no file none.yml"),
        (["--config", "conf"], "--config: conf is a folder; name the file"),
        (["--config", "/dev/zero"], "--config: /dev/zero is larger than 1 MiB; is it a config"),
        (["--use-config"], "--use-config: there is no traincheck.yml here; name the file with"),
    ],
)
def test_a_file_that_is_not_there_is_told(arguments, message):
    """The option that names it stands in front."""
    result = CliRunner().invoke(collect, arguments)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gzip: true\npyscript: none.py", "2: --pyscript: there is no file conf/none.py"),
        ("pyscript: t.yml\nlockstep: true", "2: --lockstep: nothing is checked while the program"),
        ("module: x\npyscript: t.yml", "1: --module x: and --pyscript name two programs; give"),
    ],
)
def test_what_is_wrong_with_a_value_is_told_with_its_line(text, message):
    """Also what is found out later; the path is as seen from here."""
    assert error(text).startswith(f"error: conf/t.yml:{message}")


def test_the_command_line_is_not_told_as_a_line_of_the_file():
    """The value that is wrong was typed."""
    message = error("sampling_interval: 3", "--sampling-interval", "0")

    assert message.startswith("error: Invalid value for '--sampling-interval'")


def test_the_file_in_the_folder_is_used_if_asked_for():
    """`--use-config` alone takes traincheck.yml; nothing takes it unasked."""
    Path("traincheck.yml").write_text("pyscript: none.py\n")

    asked = CliRunner().invoke(collect, ["--use-config"])
    not_asked = CliRunner().invoke(collect, ["--gzip"])

    assert asked.stderr == "error: traincheck.yml:1: --pyscript: there is no file none.py\n"
    assert not_asked.stderr.startswith("error: Missing option '-p' / '--pyscript'")


def test_the_whole_job_takes_the_same_file():
    """`traincheck run` finds SCRIPT in it, and has keys of its own."""
    write("pyscript: none.py\nreference: good.py\n")

    result = CliRunner().invoke(run, ["--config", "conf/t.yml"])
    typed = CliRunner().invoke(run, ["other.py", "--config", "conf/t.yml"])

    expected = "error: conf/t.yml:2: --reference: there is no file conf/good.py\n"
    assert result.stderr == typed.stderr == expected
