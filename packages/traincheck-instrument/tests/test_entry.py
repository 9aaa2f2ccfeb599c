"""The program under the entry script is the user's program."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from traincheck_instrument.settings import RecordingSettings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torch

PROGRAM = """\
import sys, os, __main__

print(__file__, __name__, __doc__, __spec__, __package__, __builtins__, __cached__)
print(sys.argv, sys.path, os.getcwd(), vars(__main__) is globals())
print(sorted(name for name in globals() if name != "__traincheck__"))
print([name for name in os.environ if name.startswith("TRAINCHECK")])

def fail():
    raise KeyError("inner")

if sys.argv[1] == "exit":
    sys.exit(int(sys.argv[2]))
if sys.argv[1] == "message":
    sys.exit("a message")
if sys.argv[1] == "chain":
    try:
        fail()
    except KeyError as error:
        raise ValueError("outer") from error
if sys.argv[1] == "interrupt":
    raise KeyboardInterrupt
if sys.argv[1] == "hook":
    sys.excepthook = lambda *error: print("hook", error[0], error[2].tb_lineno)
    fail()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, and an entry script for it in another."""
    (tmp_path / "sub folder").mkdir()
    (tmp_path / "sub folder" / "train.py").write_text(PROGRAM)
    (tmp_path / "out").mkdir()
    write_entry(tmp_path, tmp_path / "sub folder" / "train.py")
    return tmp_path


def write_entry(folder: Path, script: Path, **settings: object) -> None:
    out = folder / "out"
    RecordingSettings(script=script, output_dir=out, run_id="r", **settings).write(out / "r.json")
    (out / "entry.py").write_text(
        "from traincheck_instrument.entry import run_program\n"
        f"run_program({str(out / 'r.json')!r})\n"
    )


def run(
    folder: Path, script: str, *arguments: str, entry: bool
) -> subprocess.CompletedProcess[str]:
    started = str(folder / "out" / "entry.py") if entry else script
    return subprocess.run(
        [sys.executable, started, *arguments],
        cwd=folder,
        env={"TRAINCHECK_ARGV0": script} if entry else {},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "arguments", "code"),
    [
        ("sub folder/train.py", ["none", "a b", "--x"], 0),
        ("sub folder/../sub folder/train.py", ["exit", "3"], 3),
        ("sub folder/train.py", ["message"], 1),
        ("sub folder/train.py", ["chain"], 1),
        ("sub folder/train.py", ["hook"], 1),
        ("sub folder/train.py", ["interrupt"], -signal.SIGINT),
    ],
)
def test_the_program_sees_and_says_what_it_would_by_itself(folder, script, arguments, code):
    """Identity, output, traceback and exit code are those of `python script.py`."""
    plain = run(folder, script, *arguments, entry=False)
    recorded = run(folder, script, *arguments, entry=True)

    assert plain.returncode == code
    assert recorded.returncode == code
    assert recorded.stdout == plain.stdout
    assert recorded.stderr == plain.stderr


def test_the_traceback_of_a_fault_inside_torch_is_the_plain_one(folder):
    """Wrappers between the program and torch are not in it, nor in that of its cause."""
    script = folder / "sub folder" / "train.py"
    script.write_text(
        "import torch\nlayers = torch.nn.Sequential(torch.nn.Linear(2, 2))\ntry:\n"
        "    layers(torch.ones(1, 3))\nexcept RuntimeError as error:\n"
        "    torch.nn.functional.softmax(layers(torch.ones(1, 2)), dim=7)\n"
    )

    plain = run(folder, "sub folder/train.py", entry=False)
    recorded = run(folder, "sub folder/train.py", entry=True)

    assert plain.returncode == recorded.returncode == 1
    assert "Linear" in plain.stderr or "linear" in plain.stderr
    assert recorded.stderr == plain.stderr


def test_a_recording_that_cannot_begin_does_not_stop_the_program(folder):
    """A plan that can't be read is told once; the program runs to its end, unrecorded."""
    script = folder / "sub folder" / "train.py"
    script.write_text("import torch\nprint(torch.ones(1).item())\n")
    write_entry(folder, script, plan_path=folder / "missing.json")

    result = run(folder, "sub folder/train.py", entry=True)

    assert result.returncode == 0
    assert result.stderr.startswith("traincheck: recording could not begin")
    assert result.stderr.count("\n") == 1
    assert result.stdout == "1.0\n"


def test_torch_is_imported_by_the_program_and_not_before(folder):
    """What torch reads at its import is what the program has set by then."""
    script = folder / "sub folder" / "train.py"
    script.write_text(
        "import os, sys\nassert 'torch' not in sys.modules\nos.environ['OMP_NUM_THREADS'] = '1'\n"
        "import torch\nprint(torch.get_num_threads(), torch.nn.Linear.forward.__name__)\n"
    )

    result = run(folder, "sub folder/train.py", entry=True)

    assert result.stdout == "1 forward\n", result.stderr
    assert list((folder / "out").glob("trace_*.json"))


def test_a_thread_that_outlives_the_main_script_is_recorded(folder):
    """The recording ends when the process does, not with the last line of the script."""
    script = folder / "sub folder" / "train.py"
    script.write_text(
        "import threading, time, torch\n"
        "def late():\n    time.sleep(0.5)\n    torch.nn.functional.relu(torch.ones(1))\n"
        "threading.Thread(target=late).start()\n"
    )

    run(folder, "sub folder/train.py", entry=True)

    (trace,) = (folder / "out").glob("trace_*.json")
    assert '"kind":"call_begin"' in trace.read_text()
    assert '"kind":"footer"' in trace.read_text()


def test_functions_of_the_program_can_be_pickled(folder):
    """`__main__` is the program, so that what it defines is found there."""
    script = folder / "sub folder" / "train.py"
    script.write_text("import pickle\ndef f(): return 5\nprint(pickle.loads(pickle.dumps(f))())\n")

    assert run(folder, "sub folder/train.py", entry=True).stdout == "5\n"


def test_settings_survive_the_file(tmp_path):
    """What the launcher writes is what the process reads."""
    settings = RecordingSettings(
        script=tmp_path / "é t.py",
        output_dir=tmp_path,
        run_id="r",
        models=("netG", "self.model"),
        plan_path=tmp_path / "plan.json",
    )

    settings.write(tmp_path / "r.json")

    assert RecordingSettings.read(tmp_path / "r.json") == settings
