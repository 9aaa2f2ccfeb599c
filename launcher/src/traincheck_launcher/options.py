"""What the user asks `traincheck-collect` for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

# The settings file has the same choices; it needs no torch.
from traincheck_instrument.settings import TensorFormat, Tracker
from traincheck_trace_schema.records import Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self


@attrs.frozen(kw_only=True)
class CollectOptions:
    """What to run, what to record of it, and where to."""

    pyscript: Path
    shscript: Path | None = None
    arguments: tuple[str, ...] = ()
    output_dir: Path | None = None
    overwrite: bool = False
    invariants: tuple[Path, ...] = ()
    models: tuple[str, ...] = ()
    tracker: Tracker | None = None  # None: the one that suits what is recorded
    modules: tuple[str, ...] = ()  # none: torch, and what the invariants speak of
    with_private: bool = False
    with_descriptors: bool = False
    with_stacks: bool = False
    tensor_format: TensorFormat = "hash"
    sampling: Sampling = attrs.field(factory=Sampling)
    max_trace_bytes: int | None = None
    gzip: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any], *, arguments: tuple[str, ...]) -> Self:
        """Make them of what the command line gave.

        Args:
            values: The values of the options, under the names of the fields; those of `Sampling` as
                `sampling_interval`, `warm_up_steps` and `overhead_budget`.
            arguments: Of the program.
        """
        given = dict(values)
        sampling = Sampling(
            interval=given.pop("sampling_interval"),
            warm_up=given.pop("warm_up_steps"),
            budget=given.pop("overhead_budget"),
        )
        models = tuple(dict.fromkeys(given.pop("models")))
        return cls(**given, arguments=arguments, models=models, sampling=sampling)
