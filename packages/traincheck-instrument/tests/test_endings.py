"""Whatever ends a program, what is on disk can be read up to there, and says how it ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

from traincheck_instrument.settings import RecordingSettings
from traincheck_trace_schema.codec import loads
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.validation import FileCheck

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torch

# Ends only when what it did before is on disk, so that the tests know what must be there.
PROGRAM = """\
import contextlib, gzip, os, pathlib, signal, sys, time
import torch
from traincheck_instrument import start_step

def on_disk():
    for path in pathlib.Path(sys.argv[1]).glob("trace_*"):
        with contextlib.suppress(EOFError):
            return (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
    return b""

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    start_step()
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
while on_disk().count(b'"kind":"step"') < 4:
    time.sleep(0.05)
start_step()
{end}
"""
CLEAN = {
    "returns": ("pass", 0),
    "sys.exit": ("sys.exit(3)", 3),
}
UNCLEAN = {
    "exception": ("raise ValueError('no more data')", 1),
    "KeyboardInterrupt": ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    "os._exit": ("os._exit(5)", 5),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


def run(folder: Path, end: str, *, compresses: bool) -> int:
    """Run the program to its end; return its exit code."""
    return start(folder, PROGRAM.replace("{end}", end), compresses=compresses).returncode


def start(folder: Path, program: str, *, compresses: bool) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    out = folder / "out"
    out.mkdir()
    script = folder / "train.py"
    script.write_text(program)
    settings = RecordingSettings(script=script, output_dir=out, run_id="r", gzip=compresses)
    settings.write(folder / "r.json")
    call = f"run_program({str(folder / 'r.json')!r})"
    (folder / "entry.py").write_text(
        f"from traincheck_instrument.entry import run_program\n{call}\n"
    )
    command = [sys.executable, str(folder / "entry.py"), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines of a trace; the last of a process that was killed may be cut."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = b"".join(members(content))
    return [line for line in content.splitlines(keepends=True) if line.endswith(b"\n")]


def members(content: bytes):
    while content:
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        yield member.decompress(content)
        content = member.unused_data


@pytest.mark.parametrize(
    ("end", "code", "is_clean", "compresses"),
    [
        *(pytest.param(*how, True, False, id=name) for name, how in CLEAN.items()),
        *(pytest.param(*how, False, False, id=name) for name, how in UNCLEAN.items()),
        pytest.param(*UNCLEAN["SIGKILL"], False, True, id="SIGKILL, gzip"),
    ],
)
def test_what_is_on_disk_is_a_valid_prefix(tmp_path, end, code, is_clean, compresses):
    """The exit code is the program's; a footer stands at a clean end and at no other."""
    assert run(tmp_path, end, compresses=compresses) == code
    (path,) = (tmp_path / "out").iterdir()
    records = [loads(line) for line in whole_lines(path)]
    assert [*FileCheck(path).problems()] == []
    trace = open_run([path])
    read = [item.record for item in trace.stream() if hasattr(item, "record")]

    assert read == records
    assert [one["step"] for one in records if one["kind"] == "step"][:4] == [0, 1, 2, 3]
    assert (records[-1]["kind"] == "footer") == is_clean
    assert any("footer" in reason for reason in trace.incomplete_because()) != is_clean


LEAVING = """\
import os, sys
import torch
from traincheck_instrument import start_step

for step in range(3):
    start_step()
    torch.nn.functional.relu(torch.ones(1))
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "output"),
    [
        ("os._exit(5)", 5, ""),
        ("os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])", 0, "1\n"),
        ("os.execlp(sys.executable, sys.executable, '-c', 'print(2)')", 0, "2\n"),
        ("if os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\nos._exit(3)", 3, ""),
    ],
    ids=["_exit", "execv", "execlp", "fork"],
)
def test_what_was_recorded_is_not_lost_by_leaving_at_once(tmp_path, end, code, output):
    """The footer is: the process did not come to its end."""
    done = start(tmp_path, LEAVING.replace("{end}", end), compresses=False)

    assert (done.returncode, done.stdout, done.stderr) == (code, output, "")
    (path,) = (tmp_path / "out").iterdir()
    records = [loads(line) for line in path.read_bytes().splitlines()]
    assert [one["step"] for one in records if one["kind"] == "call_end"] == [0, 1, 2]
    assert records[-1]["kind"] != "footer"


def test_a_program_goes_on_being_recorded_if_it_could_not_leave(tmp_path):
    """What `os.exec` was to run is not there."""
    end = (
        "try:\n    os.execv('/nowhere', ['x'])\nexcept FileNotFoundError:\n"
        "    torch.nn.functional.relu(torch.ones(1))\n"
    )
    assert start(tmp_path, LEAVING.replace("{end}", end), compresses=False).returncode == 0
    (path,) = (tmp_path / "out").iterdir()
    records = [loads(line) for line in path.read_bytes().splitlines()]

    assert sum(one["kind"] == "call_end" for one in records) == 4
    assert records[-1]["kind"] == "footer"
