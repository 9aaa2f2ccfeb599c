"""Programs in folders, run plainly and under traincheck-collect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest

Result: TypeAlias = "subprocess.CompletedProcess[str]"

TRAINING = """\
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
print("weight", model.weight.tolist())
"""


@attrs.frozen
class Place:
    """A folder to work in, and the commands of this environment."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, *command: str, **variables: str) -> Result:
        """Run a command in the folder."""
        bin_folder = str(Path(sys.executable).parent)
        return subprocess.run(
            command,
            cwd=self.path,
            env={"PATH": f"{bin_folder}:/usr/bin:/bin", "LANG": "C.UTF-8", **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def collect(self, *arguments: str, **variables: str) -> Result:
        """Run traincheck-collect in the folder, with the output folder `out`."""
        command = [sys.executable, "-m", "traincheck_launcher", "--output-dir", "out"]
        return self.run(*command, *arguments, **variables)

    @property
    def out(self) -> Path:
        """The output folder."""
        return self.path / "out"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty folder."""
    return Place(tmp_path)


@pytest.fixture
def training(place: Place) -> Place:
    """A folder with a small training program, `train.py`."""
    place.write("train.py", TRAINING)
    return place
