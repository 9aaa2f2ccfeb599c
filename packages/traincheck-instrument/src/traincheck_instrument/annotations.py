"""What a program tells of itself, beside steps and stages. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traincheck_instrument import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_instrument.contexts.contexts import Contexts


class Annotation:
    """What was told holds on; as a context manager, until it is left."""

    def __init__(self, contexts: Contexts | None, before: Mapping[str, Any]) -> None:
        self._contexts = contexts
        self._before = before

    def __enter__(self) -> None:
        """Go on with what was told."""

    def __exit__(self, *_: object) -> None:
        """Go back to what was told before."""
        if self._contexts is not None:
            self._contexts.restore(self._before)


def annotate(**values: Any) -> Annotation:
    """Tell facts that hold from now on, in all threads: `annotate(phase="warmup")`.

    Each call that is recorded has them among its contexts, as `user.phase`, and invariants may
    depend on them. None takes a fact back. `with annotate(phase="warmup"):` goes back to what was
    told before. Without a recording in this process nothing is done.
    """
    recorder = current.recorder()
    if recorder is None:
        return Annotation(None, {})
    try:
        return Annotation(recorder.contexts, recorder.contexts.annotate(values))
    except Exception as error:  # noqa: BLE001  training must not feel our faults
        recorder.faults.contain("an annotation", error)
        return Annotation(None, {})
