"""What the user asks `traincheck-collect` for."""

from __future__ import annotations

from pathlib import Path

import attrs

# The settings file has the same choices; it needs no torch.
from traincheck_instrument.settings import TensorFormat, Tracker
from traincheck_trace_schema.records import Sampling


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
