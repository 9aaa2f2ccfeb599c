"""The settings file: what the launcher tells the processes that record."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from traincheck_trace_schema.codec import dumps, loads, structure, unstructure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import read_json, write_json
from traincheck_trace_schema.records import Sampling

Tracker: TypeAlias = Literal["subclass", "proxy", "sampler"]
TensorFormat: TypeAlias = Literal["hash", "stats", "full"]


@attrs.frozen(kw_only=True)
class Guard:
    """A check that follows the run, and stops it where it finds what makes it fail."""

    progress: Path  # the file in which it tells how far it is
    lockstep: bool = False  # steps and checkpoints wait for the verdict on what came before


@attrs.frozen(kw_only=True)
class RecordingSettings:
    """How a run is recorded. Paths are absolute, so that a process may stand in any folder."""

    script: Path | None = None  # None: the program began the recording itself
    module: str | None = None  # the script runs as this module, as `python -m` runs one
    output_dir: Path
    run_id: str
    models: tuple[str, ...] = ()  # names in the script, as "model" or "self.model"
    plan_path: Path | None = None  # None: everything public is recorded
    modules: tuple[str, ...] = ("torch",)  # whose functions are recorded
    with_private: bool = False  # functions that are not public, too
    with_descriptors: bool = False  # builtins and descriptors, too
    with_stacks: bool = False  # each call names all user code around it
    # Has a `sitecustomize` by which programs that this one starts are recorded; None: they aren't.
    site_hook: Path | None = None
    tracker: Tracker | None = "subclass"  # None: no variables
    sampling: Sampling = attrs.field(factory=Sampling)
    tensor_format: TensorFormat = "hash"
    gzip: bool = False  # traces are compressed
    max_trace_bytes: int | None = None  # of all traces together; None: as many as there are
    steps_from: Literal["source", "hand"] | None = None  # who marks the steps, if anybody does
    watches_evaluation: bool = False  # nothing marks it: calls of tracked models tell
    guard: Guard | None = None  # None: nothing stops the run
    by_hand: tuple[str, ...] = ()  # our functions that a file of the program calls itself

    @classmethod
    def read(cls, path: Path) -> RecordingSettings:
        """Read a settings file.

        Raises:
            ConfigError: the file cannot be read, or a field is wrong.
        """
        document = read_json(path, error=ConfigError)
        return structure(cls, document, where=str(path), error=ConfigError)

    @classmethod
    def of_text(cls, text: str, *, where: str = "settings") -> RecordingSettings:
        """Make the settings that `text` gave.

        Raises:
            ConfigError: a field is wrong; the message begins with `where`.
        """
        return structure(cls, loads(text), where=where, error=ConfigError)

    def text(self) -> str:
        """Return the settings as text, for another process."""
        return dumps(unstructure(self))

    def write(self, path: Path) -> None:
        """Write the settings file."""
        write_json(path, self)
