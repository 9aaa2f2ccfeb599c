"""The programs that are measured, and the command lines that run them."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import attrs

FOLDER = Path(__file__).parents[2] / "workloads"
SCRIPTS = Path(sysconfig.get_path("scripts"))


@attrs.frozen
class Workload:
    """A program that trains, with the names of its models and how many ranks it needs."""

    name: str
    models: tuple[str, ...] = ("model",)
    ranks: int = 1

    @property
    def path(self) -> Path:
        """Where the program is."""
        return FOLDER / f"{self.name}.py"

    def argv(self, script: Path) -> list[str]:
        """Return the command that runs it, or a script in its place."""
        if self.ranks == 1:
            return [sys.executable, str(script)]
        launch = (SCRIPTS / "torchrun", "--standalone", "--nproc-per-node", self.ranks)
        return [*map(str, launch), str(script)]


WORKLOADS = {
    each.name: each
    for each in (
        Workload("digits_cnn"),
        Workload("char_transformer"),
        Workload("ddp_digits", ranks=2),
        Workload("digits_vae"),
        Workload("char_lstm"),
        Workload("digits_mlp_amp"),
        Workload("gcn_synthetic"),
        Workload("dcgan_digits", models=("netG", "netD")),
    )
}
