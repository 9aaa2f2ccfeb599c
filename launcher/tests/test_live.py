"""A check beside the program: what it needs, how it begins and ends, and what is told of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from traincheck_instrument.gate.stopping import StopNote
from traincheck_launcher.commands.collect import collect
from traincheck_launcher.commands.run import run
from traincheck_launcher.live import watch
from traincheck_launcher.live.ending import LiveEnding
from traincheck_launcher.live.output import LiveOutput
from traincheck_trace_schema.progress import Progress
from traincheck_trace_schema.progress_file import read_progress, write_progress
from traincheck_trace_schema.results_file import SUMMARY_NAME, read_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    import click
    from conftest import Place

WAITS = """\
import time
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10_000):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    print("made", step, flush=True)
    time.sleep(0.05)
"""


def error(command: click.Command, *arguments: str) -> str:
    """Return the one line of an error."""
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    line, end = result.stderr.split("\n")
    assert end == ""
    return line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check"], "error: --check: needs the invariants to check; name them with --invariants"),
        (["--lockstep"], "error: --lockstep: nothing is checked while the program runs; add"),
        (["--on-violation", "stop"], "error: --on-violation stop: nothing is checked while"),
        (
            ["--check", "-i", "invariants.json", "--lockstep"],
            "error: --lockstep: the training would wait for verdicts that stop nothing; add",
        ),
        (["--baseline", "known.json"], "error: --baseline: nothing is checked while the program"),
        (
            ["--check", "-i", "invariants.json", "--baseline", "known.json"],
            "error: --baseline: there is no file known.json",
        ),
        (["--on-violation", "shout"], "error: Invalid value for '--on-violation'"),
    ],
)
def test_what_a_check_needs_is_told_before_anything_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """In one line; no folder is made."""
    monkeypatch.chdir(place.path)
    place.write("train.py", "raise SystemExit(9)\n")

    assert error(collect, "-p", "train.py", "--output-dir", "out", *arguments).startswith(message)
    assert not place.out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: there is nothing to check it against: name invariants with --invariants, or"),
        (["--reference", "none.py"], "error: --reference: there is no file none.py"),
        (["--reference-args", "1"], "error: --reference-args: there is no --reference that they"),
        (["--reference", "train.py", "--reference-args", "'"], 'error: --reference-args: "\'": '),
        (
            ["--reference", "train.py", "-i", "invariants.json"],
            "error: --reference: --invariants names what was learnt already; give one of them",
        ),
        (
            ["--reference", "train.py", "-s", "run.sh"],
            "error: --reference: --shscript starts the program, not the reference; record that",
        ),
    ],
)
def test_what_the_whole_job_needs_is_told_before_anything_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """In one line; no folder is made."""
    monkeypatch.chdir(place.path)
    place.write("train.py", "raise SystemExit(9)\n")

    told = error(run, "train.py", "--output-dir", "out", *arguments)

    assert told.startswith(message)
    assert not place.out.exists()


def test_a_program_that_is_not_named_is_missed() -> None:
    """What it would be checked against does not matter."""
    told = error(run, "-i", "invariants.json")

    assert told == "error: the program is missing: traincheck run train.py"


def test_a_reference_that_fails_is_not_learnt_from(place: Place) -> None:
    """That is said, with its exit code."""
    place.write("good.py", "import torch\ntorch.ones(1)\nraise SystemExit(7)\n")
    place.write("train.py", "raise SystemExit(9)\n")

    result = place.run(
        *("traincheck", "run", "train.py", "--reference", "good.py", "--output-dir", "out")
    )

    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == (
        "error: --reference: good.py ended with exit code 7; learn from a program that is right"
    )
    assert not (place.out / "run").exists()


@pytest.fixture
def without_checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all packages of this one, and of the commands only those of the launcher."""
    folder = tmp_path_factory.mktemp("env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    paths = sysconfig.get_paths()
    (site,) = (folder / "lib").glob("python3*/site-packages")
    lines = [f"import site; site.addsitedir({paths[key]!r})" for key in ("purelib", "platlib")]
    (site / "these.pth").write_text("\n".join(lines))
    return folder / "bin" / "python"


def test_a_missing_checker_is_told_before_anything_runs(
    place: Place, without_checker: Path
) -> None:
    """In one line that says how to install it."""
    place.write("train.py", "print('ran')\n")
    place.write("invariants.json", "")
    result = subprocess.run(
        [
            *(without_checker, "-m", "traincheck_launcher", "-p", "train.py"),
            *("--output-dir", "out", "-i", "invariants.json", "--check"),
        ],
        cwd=place.path,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 2, result.stderr
    assert result.stderr == (
        "error: --check: traincheck-onlinecheck is not installed: "
        "pip install 'traincheck-launcher[check]'\n"
    )
    assert result.stdout == ""
    assert not place.out.exists()


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Invariants of a program that is right."""
    folder = tmp_path_factory.mktemp("learnt")
    (folder / "train.py").write_text(WAITS.replace("10_000)", "12)").replace("0.05", "0"))
    scripts = Path(sysconfig.get_path("scripts"))
    for command in (
        ("traincheck-collect", "-p", "train.py", "--models-to-track", "model", "--output-dir", "t"),
        ("traincheck-infer", "-f", "t", "-o", "invariants.json"),
    ):
        subprocess.run([scripts / command[0], *command[1:]], cwd=folder, check=True)
    return folder / "invariants.json"


@pytest.fixture
def waiting(place: Place, learnt: Path) -> Place:
    """A folder with a program that goes on for long, and what it is checked against."""
    shutil.copy(learnt, place.path)
    place.write("train.py", WAITS)
    return place


def begin(place: Place, *options: str) -> subprocess.Popen[str]:
    """Begin to run the program with a check."""
    bin_folder = str(Path(sys.executable).parent)
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "traincheck_launcher", "-p", "train.py", "--output-dir", "out"),
            *("--models-to-track", "model", "-i", "invariants.json", "--check", *options),
        ],
        cwd=place.path,
        env={"PATH": f"{bin_folder}:/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(is_so: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.torch
def test_a_signal_ends_program_and_check(waiting: Place) -> None:
    """The check judges all that was told until then, and is not left behind."""
    output = LiveOutput(waiting.out)
    with begin(waiting) as process:
        until(lambda: output.progress.exists() and len(_steps(output)) > 0)
        until(lambda: _steps(output)[0] > 3)
        checker = read_progress(output.progress).pid
        assert os.getsid(checker) == checker  # the terminal's Ctrl-C does not reach it
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)

    assert process.returncode != 0
    assert not is_alive(checker)
    assert "running" not in (output.results / SUMMARY_NAME).read_text()
    assert read_summary(output.results / SUMMARY_NAME).failed == 0
    assert "KeyboardInterrupt" in told
    assert "unchecked" not in told


def _steps(output: LiveOutput) -> list[int]:
    return [process.step for process in read_progress(output.progress).processes]


@pytest.mark.torch
def test_a_check_is_not_left_behind_by_a_launcher_that_was_killed(waiting: Place) -> None:
    """Nobody would end it."""
    output = LiveOutput(waiting.out)
    with begin(waiting) as process:
        until(lambda: output.progress.exists() and len(_steps(output)) > 0)
        checker = read_progress(output.progress).pid
        process.kill()
    until(lambda: not is_alive(checker))

    assert not read_progress(output.progress).running


@pytest.mark.torch
def test_what_the_check_cannot_use_is_told_before_the_program_runs(waiting: Place) -> None:
    """By the check itself, once; the program does not run."""
    (waiting.out / "check").mkdir(parents=True)
    (waiting.out / "check" / ".lock").mkdir()  # where it would put its lock
    with begin(waiting) as process:
        output, told = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "made" not in output
    assert [line[:7] for line in told.splitlines()] == ["error: "]


@pytest.mark.parametrize("stops", [True, False])
def test_a_program_that_does_not_stop_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    stops: bool,
) -> None:
    """If it was to stop, and only once."""
    monkeypatch.setattr(watch, "_STOPPING_SECONDS", 0.1)
    monkeypatch.setattr(watch, "_LOOK_SECONDS", 0.02)
    progress = tmp_path / "progress.json"
    running = Progress(run_id="r", host="here", pid=1, beat=0, running=True, fails=True)
    write_progress(progress, running)

    watching = watch.Watch(lambda: None, progress, stops=stops)
    watching.start()
    watching.join(1.0)
    watching.end()

    told = capsys.readouterr().err.splitlines()
    expected = [
        "traincheck: the check has found what it stops for: the program ends at its next step",
        "traincheck: the program has come to no step since then; Ctrl-C ends it",
    ]
    assert told == (expected if stops else [])


def test_the_exit_code_is_the_programs_unless_it_is_content(tmp_path: Path) -> None:
    """A check that was killed says nothing; a program that was stopped failed."""
    output = LiveOutput(tmp_path)
    codes = {
        (program, check): LiveEnding(output=output, program=program, check=check).code
        for program in (0, 5)
        for check in (0, 1, 3, -9)
    }

    assert codes == {
        (0, 0): 0,
        (0, 1): 1,
        (0, 3): 3,
        (0, -9): 0,
        **{(5, check): 5 for check in (0, 1, 3, -9)},
    }
    output.results.mkdir()
    StopNote(step=3, before="step").write(output.progress)
    assert LiveEnding(output=output, program=0, check=0).code == 1
    assert LiveEnding(output=None, program=4, check=0).code == 4
