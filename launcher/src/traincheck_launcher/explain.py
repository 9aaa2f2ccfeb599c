"""Says, without running anything, what would be marked and tracked in a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_instrument.source import Findings

NO_TRAINING_LOOP = (
    "mark the loop by hand, in the file that holds it: put 'import traincheck_instrument' at its "
    "top and 'traincheck_instrument.start_step()' first into the loop's body"
)


def explain(findings: Findings, filename: str) -> Iterator[str]:
    """Yield lines for people: the loops, each with file and line, and the assignments tracked."""
    for loop in findings.loops:
        step = "start_step()" if loop.kind == "training" else "start_eval_step()"
        if loop.accumulating:
            step = "start_step(accumulating=True), as the optimizer steps under a condition"
        yield f"{loop.file}:{loop.line}: {loop.kind} loop: {step}"
    for name in sorted(findings.by_hand):
        yield f"{filename}: calls {name}() itself, so none is put in"
    kinds = {loop.kind for loop in findings.loops}
    if "training" not in kinds and "start_step" not in findings.by_hand:
        yield f"{filename}: no training loop found; {NO_TRAINING_LOOP}"
    for tracked in findings.tracked:
        yield f"{filename}:{tracked.line}: tracked as {tracked.name!r}"
    if not findings.tracked and "track" not in findings.by_hand:
        names = ", ".join(findings.bound.modules) or "none found"
        yield f"{filename}: no model is tracked (--models-to-track); candidates: {names}"
