"""However many workers there are, and wherever: the file is the same, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import WriteRun

COMMAND = Path(sys.executable).with_name("traincheck-infer")


@pytest.fixture
def folders(write_run: WriteRun) -> list[Path]:
    """Write three runs that differ."""
    return [
        write_run("one"),
        write_run("other", 9, unused=["model.bn.weight"]),
        write_run("third", 7),
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a cluster of two workers, each a process, on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        host="127.0.0.1", n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as started:
        yield started


def infer(*args: str | Path, code: int = 0) -> str:
    result = subprocess.run(
        [COMMAND, *map(str, args)], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == code, result.stderr
    return result.stdout if code == 0 else result.stderr


def test_several_processes_write_the_same_file(folders: list[Path], tmp_path: Path) -> None:
    """Also if there are more of them than runs, and the runs are named in another order."""
    alone, few, many = (tmp_path / f"{name}.json" for name in ("alone", "few", "many"))

    infer("-f", *folders, "-o", alone)
    infer("-f", *folders[::-1], "-o", few, "-j", "2")
    infer("-f", *folders[1:], folders[0], "-o", many, "-j", "8")

    assert alone.read_bytes()
    assert alone.read_bytes() == few.read_bytes() == many.read_bytes()


def test_a_cluster_writes_the_same_file(
    folders: list[Path], tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workers read the traces themselves, from paths that do not depend on where they stand."""
    monkeypatch.chdir(tmp_path)
    names = [folder.relative_to(tmp_path) for folder in folders]

    infer("-f", *names, "-o", "alone.json")
    idle = cluster.scheduler.transition_counter
    said = infer("-f", *names, "-o", "cluster.json", "--scheduler", cluster.scheduler_address)

    assert "Read 3 runs: 22 training steps" in said
    assert Path("alone.json").read_bytes() == Path("cluster.json").read_bytes()
    assert cluster.scheduler.transition_counter > idle


def test_what_a_worker_cannot_read_is_told_as_always(folders: list[Path], tmp_path: Path) -> None:
    """An error of the input is one line, whichever process met it."""
    (trace,) = folders[0].iterdir()
    trace.write_text(trace.read_text().replace('"kind": "step"', '"kind": 7', 1))

    told = infer("-f", *folders, "-o", tmp_path / "x.json", "-j", "2", "--strict", code=2)

    # On a loaded machine joblib may add a warning of its own.
    (line,) = [line for line in told.splitlines() if line.startswith("error: ")]
    assert f"{trace.name}:" in line
    assert "Traceback" not in told


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "scheduler.invalid", "tcp://host:port"])
def test_a_scheduler_that_is_not_there_is_told(
    folders: list[Path], tmp_path: Path, address: str
) -> None:
    """One line says what to give."""
    pytest.importorskip("distributed")

    told = infer("-f", *folders, "-o", tmp_path / "x.json", "--scheduler", address, code=2)

    assert told.startswith(f"error: --scheduler {address}: no Dask scheduler answers")
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_only_several_workers_need_joblib(folders: list[Path], tmp_path: Path, jobs: str) -> None:
    """Importing it takes time that one process does not have to spend."""
    code = (
        "import sys\n"
        "from traincheck_infer.cli import infer\n"
        f"infer(['-f', {str(folders[0])!r}, '-o', 'x.json', '-j', {jobs!r}],"
        " standalone_mode=False)\n"
        "print('joblib' in sys.modules)"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert result.stdout.splitlines()[-1] == str(jobs == "2")
