"""The child process: output, signals, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from traincheck_launcher.running.child import run_child

RUNNER = """\
import os, sys
from pathlib import Path
from traincheck_launcher.running.child import run_child
sys.exit(run_child(sys.argv[2:], env=os.environ, log=Path(sys.argv[1])))
"""


def start(log: Path, *argv: str) -> subprocess.Popen[bytes]:
    """Start a launcher that runs a program, and wait until that has written a line."""
    launcher = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(log), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"up\n"
    return launcher


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; sys.exit(5)", 5),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 15)", 143),
    ],
)
def test_the_exit_code_is_the_programs_own(tmp_path, code, expected):
    """A signal gives 128 + its number, as in a shell."""
    assert run_child([sys.executable, "-c", code], env=os.environ, log=tmp_path / "l") == expected


def test_bytes_pass_through_unchanged_each_on_its_stream(tmp_path):
    """Output that is no text, and no lines, arrives as it is; the log holds both streams."""
    code = "import os; os.write(1, b'\\xff\\x00\\r1'); os.write(2, b'two')"
    log = tmp_path / "log"

    result = subprocess.run(
        [sys.executable, "-c", RUNNER, str(log), sys.executable, "-c", code],
        capture_output=True,
        check=True,
    )

    assert result.stdout == b"\xff\x00\r1"
    assert result.stderr == b"two"
    assert sorted(log.read_bytes()) == sorted(b"\xff\x00\r1two")


def test_output_appears_while_the_program_runs(tmp_path):
    """A line is passed on before the program ends, without a newline too."""
    code = "import os, sys; os.write(1, b'up\\n'); os.write(1, b'?'); sys.stdin.read()"
    launcher = start(tmp_path / "log", sys.executable, "-c", code)
    assert launcher.stdout is not None

    assert launcher.stdout.read(1) == b"?"

    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=30)


COUNTING = """\
import signal, sys, time
seen = []
signal.signal({signal}, lambda *_: seen.append(1))
print("up", flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(0.5)
sys.exit(10 + len(seen))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
@pytest.mark.parametrize("is_to_group", [False, True])
def test_a_signal_reaches_the_program_once(tmp_path, number, is_to_group):
    """Whether it is sent to the launcher alone or to its group, the program gets it once."""
    code = COUNTING.format(signal=int(number))
    launcher = start(tmp_path / "log", sys.executable, "-c", code)

    if is_to_group:
        os.killpg(launcher.pid, number)
    else:
        launcher.send_signal(number)

    launcher.communicate(timeout=30)
    assert launcher.returncode == 11


def test_a_program_that_is_told_to_save_goes_on(tmp_path):
    """As by SIGUSR1 of a scheduler; what it has started is left alone, too."""
    code = (
        "import signal, subprocess, time\n"
        "saved = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: saved.append(1))\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "print('up', flush=True)\n"
        "while not saved:\n    time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
        "print(child.poll())\n"
        "child.kill()\n"
    )
    launcher = start(tmp_path / "log", sys.executable, "-c", code)

    launcher.send_signal(signal.SIGUSR1)

    assert launcher.communicate(timeout=30)[0].split() == [b"None"]
    assert launcher.returncode == 0


def test_no_orphan_is_left_when_a_shell_script_is_ended(tmp_path):
    """What the shell script started ends too, although the shell dies at once."""
    script = tmp_path / "run.sh"
    script.write_text("sleep 300 &\necho $! > pid\necho up\nwait\n")
    launcher = start(tmp_path / "log", "bash", "-c", f"cd {tmp_path}; . ./run.sh")
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)

    launcher.send_signal(signal.SIGTERM)

    launcher.communicate(timeout=30)
    assert launcher.returncode == 143
    assert not is_alive(pid)


def test_a_process_left_behind_does_not_hold_the_launcher(tmp_path):
    """A shell script may leave a server running; the launcher ends when the script does."""
    began = time.monotonic()

    run_child(["bash", "-c", "sleep 20 & exit 0"], env=os.environ, log=tmp_path / "log")

    assert time.monotonic() - began < 15


def test_a_reader_that_goes_away_does_not_stop_the_program(tmp_path):
    """After `| head` the program goes on, and the log holds all of it."""
    code = "print('up', flush=True)\nfor i in range(20000): print(i)\n"
    log = tmp_path / "log"
    launcher = start(log, sys.executable, "-c", code)
    assert launcher.stdout is not None

    launcher.stdout.close()

    launcher.communicate(timeout=30)
    assert launcher.returncode == 0
    assert log.read_text().endswith("19999\n")


def test_an_ignored_signal_stays_ignored(tmp_path):
    """Under nohup the program ignores SIGHUP, as it would without the launcher."""
    code = "import signal, sys; sys.exit(7 * (signal.getsignal(signal.SIGHUP) is signal.SIG_IGN))"
    command = [sys.executable, "-c", RUNNER, str(tmp_path / "log"), sys.executable, "-c", code]

    result = subprocess.run(
        ["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "-", *command], check=False
    )

    assert result.returncode == 7


def test_a_signal_that_comes_while_the_program_is_started_reaches_it(tmp_path, monkeypatch):
    """It is kept until there is a group to send it to."""
    started = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), signal.SIGTERM)
        return started(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", interrupted)

    assert run_child(["sleep", "20"], env=os.environ, log=tmp_path / "log") == 143


def test_a_reader_that_lags_behind_a_non_blocking_stream_gets_all(tmp_path):
    """A full pipe that does not block is waited for; nothing is lost."""
    size = 2_000_000
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    code = f"print('x' * {size}, end='')"
    command = [sys.executable, "-c", RUNNER, str(tmp_path / "log"), sys.executable, "-c", code]

    with subprocess.Popen(command, stdout=writing), os.fdopen(reading, "rb") as reader:
        os.close(writing)
        received = reader.read()

    assert len(received) == size


ON_TERMINAL = """\
import os, sys
os.setsid()
terminal = os.open(sys.argv.pop(1), os.O_RDWR)  # becomes the controlling one
os.dup2(terminal, 0)
"""


def start_on_terminal(log: Path, *argv: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a launcher in the foreground of a terminal; return also what types on it."""
    keyboard, terminal = os.openpty()
    command = [sys.executable, "-c", ON_TERMINAL + RUNNER, os.ttyname(terminal), str(log), *argv]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == b"up\n"
    os.close(terminal)
    # The program may be up before it is in the foreground, where typing reaches it.
    end = time.monotonic() + 30
    while os.tcgetpgrp(keyboard) == os.getpgid(launcher.pid):
        assert time.monotonic() < end
        time.sleep(0.01)
    return launcher, keyboard


def test_control_c_reaches_the_program_once(tmp_path):
    """The terminal's signal goes to the program, and is not passed on a second time."""
    code = COUNTING.format(signal=int(signal.SIGINT))
    launcher, keyboard = start_on_terminal(tmp_path / "log", sys.executable, "-c", code)

    os.write(keyboard, b"\x03")

    launcher.communicate(timeout=30)
    os.close(keyboard)
    assert launcher.returncode == 11


def test_the_program_reads_from_the_terminal(tmp_path):
    """Typing arrives at the program: it is in the foreground."""
    code = "print('up', flush=True); import sys; sys.exit(len(input()))"
    launcher, keyboard = start_on_terminal(tmp_path / "log", sys.executable, "-c", code)

    os.write(keyboard, b"seven\n")

    launcher.communicate(timeout=30)
    os.close(keyboard)
    assert launcher.returncode == 5


def test_control_z_stops_both_and_both_go_on(tmp_path):
    """Ctrl-Z stops the launcher with the program, as a shell expects of a job."""
    code = "print('up', flush=True); import sys; sys.exit(len(input()))"
    launcher, keyboard = start_on_terminal(tmp_path / "log", sys.executable, "-c", code)

    os.write(keyboard, b"\x1a")
    _, status = os.waitpid(launcher.pid, os.WUNTRACED)
    launcher.send_signal(signal.SIGCONT)
    os.write(keyboard, b"four\n")

    assert os.WIFSTOPPED(status)
    launcher.communicate(timeout=30)
    os.close(keyboard)
    assert launcher.returncode == 4


def test_a_launcher_that_is_killed_leaves_no_program(tmp_path):
    """It can't pass that signal on; the system ends its child."""
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    run = (
        "import sys; from pathlib import Path\n"
        "from traincheck_launcher.running.child import run_child\n"
        f"run_child([sys.executable, '-c', {program!r}], env={{}}, log=Path('log'))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", run], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        child = int(launcher.stdout.readline())
        launcher.kill()
        launcher.wait()
        until = time.monotonic() + 60
        while Path(f"/proc/{child}").exists() and time.monotonic() < until:
            time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()
