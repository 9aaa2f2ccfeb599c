"""The checker on an analysis machine: installed from wheels, without torch, it checks a trace."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from traincheck_relations.testing.traces import TraceBuilder, train

HERE = Path(__file__).parent

PACKAGES = HERE.parent / "packages"
NEEDED = ("trace-schema", "relations", "check")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Build the checker and its siblings from copies of their folders."""
    out = tmp_path_factory.mktemp("wheels")
    for name in NEEDED:
        package = PACKAGES / f"traincheck-{name}"
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
        subprocess.run(command, cwd=package, check=True, capture_output=True)
    return out


def test_the_checker_installs_without_torch_and_checks(wheels, tmp_path):
    """An empty environment gets no torch; the installed command finds the broken step."""
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True, symlinks=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--find-links", wheels]
    subprocess.run([*install, "traincheck-check"], check=True)
    packages = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    good, bad = TraceBuilder(tmp_path / "good"), TraceBuilder(tmp_path / "bad", run_id="bad")
    train(good.rank(), 6)
    train(bad.rank(), 6, stuck=("model.fc2.weight",), since=3)
    good.write()
    bad.write()
    infer = Path(sys.executable).with_name("traincheck-infer")
    subprocess.run([infer, "-f", "good", "-o", "invariants.json"], cwd=tmp_path, check=True)

    result = subprocess.run(
        [environment / "bin" / "traincheck-check", "-f", "bad", "-i", "invariants.json", "-o", "r"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "traincheck-check==" in packages
    assert "torch==" not in packages
    assert result.returncode == 1, result.stderr
    assert "model.fc2.weight" in result.stdout
    assert "step 3" in result.stdout
    shutil.rmtree(environment)
