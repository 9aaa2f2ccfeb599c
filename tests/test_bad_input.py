"""Commands that are given traces and invariants of any kind: an exit code that means something."""

from __future__ import annotations

import gzip
import os
import random
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from traincheck_check.commands.check import check
from traincheck_infer.cli import infer
from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable

    import click

_MEGABYTE = 2**20
_STEPS = 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a folder with the trace of a good run in `good`, and its invariants."""
    monkeypatch.chdir(tmp_path)  # a path of a socket must be short
    trace = TraceBuilder(tmp_path / "good", run_id="good", world_size=2)
    for rank in range(2):
        train(trace.rank(rank), _STEPS)
    trace.write()
    result = CliRunner().invoke(infer, ["-f", "good", "-o", "invariants.json"])
    assert result.exit_code == 0, result.output


def _run(command: click.Command, *args: str) -> Result:
    """Run a command; it ends as commands do, and never because of a fault of ours."""
    options = {"check": ["-i", "invariants.json", "-o", "results"], "infer": ["-o", "learnt.json"]}
    result = CliRunner().invoke(command, [*args, *options[str(command.name)]])
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code in {0, 1, 2, 3}, result.output
    assert "fault of TrainCheck" not in result.stderr
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert result.stderr.startswith("error: "), result.stderr
        assert len(result.stderr.splitlines()) == 1
    return result


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


_UNREADABLE: dict[str, Callable[[Path], Any]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "socket": _socket,
    "loop": lambda path: path.symlink_to(path.name),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "garbage": lambda path: path.write_bytes(bytes(range(256))),
    "no gzip": lambda path: path.write_bytes(b"\x1f\x8b" + bytes(99)),
    "bomb": lambda path: path.write_bytes(gzip.compress(bytes(50 * _MEGABYTE), 1)),
    "long": lambda path: path.write_bytes(b"[" * (20 * _MEGABYTE)),
}
_COMMANDS = pytest.mark.parametrize("command", [check, infer], ids=["check", "infer"])


@_COMMANDS
@pytest.mark.parametrize("kind", _UNREADABLE)
@pytest.mark.usefixtures("folder")
def test_a_shard_that_cannot_be_read(command: click.Command, kind: str) -> None:
    """Beside others it is left out and told; alone, named or strictly it is an error."""
    bad = Path("good", "trace_bad.json")
    _UNREADABLE[kind](bad)

    result = _run(command, "-f", "good")
    assert result.exit_code == (3 if command is check else 0)
    assert "trace_bad.json" in result.stderr

    assert _run(command, "-f", "good", "--strict").exit_code == 2
    assert _run(command, "-t", str(bad)).exit_code == 2
    for other in Path("good").glob("trace_r*"):
        other.unlink()
    assert _run(command, "-f", "good").exit_code == 2


@pytest.mark.parametrize("kind", _UNREADABLE)
@pytest.mark.usefixtures("folder")
def test_invariants_that_cannot_be_read(kind: str) -> None:
    """It is an error, and no file is waited for."""
    Path("invariants.json").unlink()
    _UNREADABLE[kind](Path("invariants.json"))

    assert _run(check, "-f", "good").exit_code == 2


def _mutated(lines: list[bytes], rng: random.Random) -> bytes:
    """Change a few values of records, or bytes."""
    lines = list(lines)
    for _ in range(rng.choice([1, 2, 5])):
        number = rng.randrange(len(lines))
        if rng.random() < 1 / 3:
            line = bytearray(lines[number] or b"x")
            line[rng.randrange(len(line))] = rng.randrange(256)
            lines[number] = bytes(line)
        else:
            lines[number] = _with_odd_value(lines[number], rng)
    return b"\n".join(lines)


_ODD = [
    None, True, -1, 2**70, 1.5, "", "x", [], {}, [[]], {"tensor": {}}, {"tensor": {"shape": 3}},
    {"object": {"attributes": 3}}, {"float": "nan"}, "\x1b[31m", 10**400,
]  # fmt: skip


def _with_odd_value(line: bytes, rng: random.Random) -> bytes:
    try:
        record = loads(line)
    except ValueError:
        return line
    inner = record
    while isinstance(inner, dict | list) and inner:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = rng.choice(keys)
        if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 1 / 3:
            inner[key] = rng.choice(_ODD)
            break
        inner = inner[key]
    return dumps(record).encode()


@_COMMANDS
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.usefixtures("folder")
def test_damaged_records(command: click.Command, seed: int) -> None:
    """Whatever the records of a trace hold: the command ends as it should."""
    rng = random.Random(seed)  # noqa: S311  reproducible damage
    for path in sorted(Path("good").iterdir()):
        path.write_bytes(_mutated(path.read_bytes().split(b"\n"), rng))

    _run(command, "-f", "good")
    _run(command, "-f", "good", "--strict")


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.usefixtures("folder")
def test_damaged_invariants(seed: int) -> None:
    """The same holds of the invariants."""
    path = Path("invariants.json")
    rng = random.Random(seed)  # noqa: S311  reproducible damage
    path.write_bytes(_mutated(path.read_bytes().split(b"\n"), rng))

    _run(check, "-f", "good")
