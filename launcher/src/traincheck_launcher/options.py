"""What the user asks `traincheck-collect` for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

# The settings file has the same choices; it needs no torch.
from traincheck_instrument.settings import TensorFormat, Tracker
from traincheck_instrument.source import folder_of_imports
from traincheck_launcher.starting.module_file import file_of_module, name_in_package
from traincheck_launcher.starting.torchrun_options import taken_out
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.records import Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self


@attrs.frozen(kw_only=True)
class CollectOptions:
    """What to run, what to record of it, and where to."""

    pyscript: Path  # of a module, its file
    module: str | None = None  # the name that the program is run by, as `python -m` does
    shscript: Path | None = None
    arguments: tuple[str, ...] = ()
    torchrun: tuple[str, ...] = ()  # options of torchrun, as it is given them
    run_id: str | None = None  # None: one that is made up, or torchrun's
    output_dir: Path | None = None
    overwrite: bool = False
    invariants: tuple[Path, ...] = ()
    models: tuple[str, ...] = ()
    tracker: Tracker | None = None  # None: the one that suits what is recorded
    modules: tuple[str, ...] = ()  # none: torch, and what the invariants speak of
    with_private: bool = False
    with_descriptors: bool = False
    with_stacks: bool = False
    follows_subprocesses: bool = False
    tensor_format: TensorFormat = "hash"
    sampling: Sampling = attrs.field(factory=Sampling)
    max_trace_bytes: int | None = None
    gzip: bool = False
    checks: bool = False  # while the program runs
    baseline: Path | None = None  # what is known to be broken
    on_violation: Literal["warn", "stop"] = "warn"
    lockstep: bool = False
    only_instr: bool = False  # nothing is run
    tracks_by_hand: bool = False  # no models are looked for in the program
    copies_files: bool = False  # those beside the script, into the output folder
    configured: tuple[str, ...] = ()  # a config file, and what it says, for the record

    @property
    def program(self) -> str:
        """What is run, as a name of files and folders may hold it."""
        return self.module or self.pyscript.stem

    @property
    def import_name(self) -> str | None:
        """The name by which the program runs as a module, as far as that is known.

        A shell script may start a script of a package either way; its imports tell then.
        """
        if self.module is not None or self.shscript is None:
            return self.module
        return name_in_package(self.pyscript)

    @property
    def import_folder(self) -> Path:
        """Where the program looks first for what it imports."""
        if self.module is not None:
            return Path.cwd()
        return folder_of_imports(self.pyscript, self.import_name)

    @classmethod
    def of(
        cls,
        values: Mapping[str, Any],
        *,
        arguments: tuple[str, ...],
        configured: tuple[str, ...] = (),
    ) -> Self:
        """Make them of what the command line gave.

        Args:
            values: The values of the options, under the names of the fields; those of `Sampling` as
                `sampling_interval`, `warm_up_steps` and `overhead_budget`.
            arguments: Of the program.
            configured: A config file, and what it says.

        Raises:
            ConfigError: they name no program, or two, or a module that is not there.
        """
        given = dict(values)
        given["pyscript"] = _program_of(given["pyscript"], given["module"])
        given["torchrun"] = tuple(taken_out(given))
        sampling = Sampling(
            interval=given.pop("sampling_interval"),
            warm_up=given.pop("warm_up_steps"),
            budget=given.pop("overhead_budget"),
        )
        models = tuple(dict.fromkeys(given.pop("models")))
        return cls(
            **given,
            arguments=arguments,
            models=() if given["tracks_by_hand"] else models,
            sampling=sampling,
            configured=configured,
        )


def _program_of(script: Path | None, module: str | None) -> Path:
    """Return the file of the program, which is named by its path or as a module."""
    if script is not None and module is not None:
        raise ConfigError(f"--module {module}: and --pyscript name two programs; give one of them")
    if script is not None:
        return script
    if module is None:
        raise ConfigError("Missing option '-p' / '--pyscript' (or '-m' / '--module')")
    return file_of_module(module)
