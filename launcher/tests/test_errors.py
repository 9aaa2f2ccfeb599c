"""Input that can't be used: one line that says what, where and what to do; exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from traincheck_launcher.commands.collect import collect


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that is never run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text("net = Net()\nnet.parameters()\nrate = 0.1\n")
    return path


def error(*arguments: str) -> str:
    """Return the one line of an error."""
    result = CliRunner().invoke(collect, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    line, end = result.stderr.split("\n")
    assert end == ""
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "none.py"], "error: --pyscript: there is no file none.py"),
        (["-p", "."], "error: --pyscript: . is a folder; name the script that is run"),
        (["-p", "train.py", "-s", "no.sh"], "error: --shscript: there is no file no.sh"),
        (["-p", "train.py", "-s", "."], "error: --shscript: . is a folder; name the shell script"),
        (
            ["-p", "train.py", "-m", "train"],
            "error: --module train: and --pyscript name two programs; give one of them",
        ),
        (["-m", "trian"], "error: --module: there is no module 'trian'; did you mean 'train'?"),
        (["-m", "train.py"], "error: --module: there is no module 'train.py'; a module is named"),
        (["-m", "json"], "error: --module: json is a package without __main__.py; name a module"),
        (["-m", "json.tol"], "error: --module: there is no module 'json.tol'; did you mean 'json."),
        (["-m", "zzqx"], "error: --module: there is no module 'zzqx' here ("),
        (["-m", "sys"], "error: --module: the source of sys can't be found"),
        (
            ["-p", "train.py", "-s", "no.sh", "--nproc-per-node", "2"],
            "error: --nproc-per-node: is for torchrun, which starts a Python script; give it to",
        ),
        (
            ["-p", "train.py", "--nnodes", "2", "--node_rank", "1"],
            "error: --nnodes 2: the machines must know that they take part in the same run; give",
        ),
        (["-p", "train.py", "--standalone", "--nproc-per"], "error: No such option"),
        (["-p", "train.py", "--output-dir", "train.py"], "error: --output-dir: "),
        (
            ["-p", "train.py", "--output-dir", "/proc/none/out"],
            "error: --output-dir: /proc/none/out cannot be written: ",
        ),
        (["-p", "train.py", "-i", "none.json"], "error: none.json: cannot be read: "),
        (
            ["-p", "train.py", "--max-trace-size", "5 apples"],
            "error: Invalid value for '--max-trace-size': '5 apples' is no size; write it as",
        ),
        (
            ["-p", "train.py", "--max-trace-size", "900kB"],
            "error: Invalid value for '--max-trace-size': '900kB' is less than 1MB",
        ),
        (
            ["-p", "train.py", "--overhead-budget", "0"],
            "error: Invalid value for '--overhead-budget': '0' is no percentage above 0 and below",
        ),
        (["-p", "train.py", "--overhead-budget", "100"], "error: Invalid value for '--overhead-"),
        (["-p", "train.py", "--overhead-budget", "nan"], "error: Invalid value for '--overhead-"),
        (["-p", "train.py", "--overhead-budget", "few"], "error: Invalid value for '--overhead-"),
        (
            ["-p", "train.py", "--modules-to-instr", "clikc"],
            "error: --modules-to-instr: there is no module 'clikc'; did you mean 'click'?",
        ),
        (
            ["-p", "train.py", "--model-tracker-style", "hooks"],
            "error: Invalid value for '--model-tracker-style': 'hooks' is not one of 'subclass', ",
        ),
        (
            ["-p", "train.py", "--tensor-dump-format", "sum"],
            "error: Invalid value for '--tensor-dump-format': 'sum' is not one of 'hash', 'stats',",
        ),
        (
            ["-p", "train.py", "--use-full-instr", "-i", "none.json"],
            "error: --use-full-instr records all that there is, --invariants only what these need;",
        ),
        (["-p", "train.py", "--sampling-interval", "0"], "error: Invalid value for '--sampling-"),
        (["-p", "train.py", "--verbose"], "error: --verbose: says more of what --explain shows;"),
        (["-s", "run.sh"], "error: Missing option '-p' / '--pyscript'"),
        (
            ["-p", "train.py", "--models-to-track"],
            "error: Option '--models-to-track' needs a value",
        ),
    ],
)
@pytest.mark.usefixtures("script")
def test_the_message_names_the_option_and_the_value(arguments, message):
    """Each wrong input is told in one line, before anything runs, and nothing is left behind."""
    assert error(*arguments).startswith(message)
    assert [path.name for path in Path.cwd().iterdir()] == ["train.py"]


def test_a_name_that_is_bound_nowhere_is_told_with_those_that_are(script):
    """The nearest name is offered, and those that hold modules are listed."""
    message = error("-p", str(script), "--models-to-track", "nets")

    assert "assigns nothing to 'nets'; did you mean 'net'?" in message
    assert message.endswith("It binds modules to: net")


def test_a_syntax_error_is_the_parsers_own(script):
    """Message and line are those that Python would show."""
    script.write_text("x = 1\nfor y in\n")

    assert error("-p", str(script)) == f"error: {script}:2: SyntaxError: invalid syntax"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\nreturn 5\n", 2, "'return' outside function"),
        ("break\n", 1, "'break' outside loop"),
        ("x = 1\nfrom __future__ import annotations\n", 2, "from __future__ imports must occur"),
    ],
)
def test_what_parses_and_is_no_program_is_refused_likewise(script, text, line, message):
    """Python finds that only when it makes code of it."""
    script.write_text(text)

    assert error("-p", str(script)).startswith(f"error: {script}:{line}: SyntaxError: {message}")


def test_a_file_that_is_no_python_is_refused(script):
    """A checkpoint passed as script gives no traceback."""
    script.write_bytes(b"\x80\x02\x00\xff")

    assert error("-p", str(script)).startswith(f"error: {script}")


def test_a_broken_invariant_is_told_with_its_line(script):
    """The file and the line stand in front of what is wrong there."""
    invariants = script.with_name("invariants.json")
    invariants.write_text("\n\n{broken\n")

    assert error("-p", str(script), "-i", str(invariants)).startswith(f"error: {invariants}:3: ")


def test_a_file_without_invariants_is_refused(script):
    """Selective collection by no invariant would record nothing."""
    invariants = script.with_name("invariants.json")
    invariants.write_text("")

    assert "no invariant in" in error("-p", str(script), "-i", str(invariants))


def test_a_missing_bash_is_told_before_anything_runs(script, monkeypatch):
    """A shell script needs one; without, nothing is written."""
    shell_script = script.with_name("run.sh")
    shell_script.write_text("python train.py\n")
    monkeypatch.setenv("PATH", "")

    message = error("-p", str(script), "-s", str(shell_script))

    assert message == "error: --shscript: bash, which runs it, is not on PATH; install it"
    assert not list(script.parent.glob("traincheck_run_*"))
