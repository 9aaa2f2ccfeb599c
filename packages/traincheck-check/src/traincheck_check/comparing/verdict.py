"""The verdict on two runs, and the line that says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.diagnosing.diagnosis import some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincheck_check.comparing.choice import Choice
    from traincheck_check.comparing.result import Divergence, RankComparison, Side, Verdict


def verdict_of(
    divergences: Sequence[Divergence], ranks: Sequence[RankComparison], choice: Choice
) -> Verdict:
    """Say whether runs are the same, as far as they could be compared."""
    if divergences:
        return "differ"
    if choice.is_of_steps:  # that variables are known from before says nothing of them
        is_compared = any(each.steps for each in ranks)
    else:
        is_compared = any(each.steps or each.calls or each.variables for each in ranks)
    return "same" if is_compared else "not compared"


def summary_of(
    verdict: Verdict,
    divergences: Sequence[Divergence],
    ranks: Sequence[RankComparison],
    sides: tuple[Side, Side],
    choice: Choice,
) -> str:
    """Say the verdict in a line."""
    if verdict == "differ":
        first = divergences[0]
        alike = [
            each.rank for each in ranks if each.divergences and _is_like(each.divergences[0], first)
        ]
        place = f"rank{'s' * (len(alike) > 1)} {some_of(map(str, alike))}"
        if all(each.kind == "steps" for each in divergences):
            if choice.is_of_steps and not any(each.steps for each in ranks):
                return f"None of the chosen steps is in both: {first.what}"
            return f"The same {_steps(ranks)} both recorded; then {first.what}"
        return f"They part {moment(first)} on {place}: {first.what}"
    if verdict == "not compared":
        if ranks and choice.is_of_steps:
            return "Nothing could be compared: none of the chosen steps is whole in both traces"
        return "Nothing could be compared: the traces have no rank, or nothing of a rank, in common"
    several = f", on {len(ranks)} ranks" if len(ranks) > 1 else ""
    incomplete = any(each.incomplete_because for each in sides)
    end = "; but a trace is incomplete" if incomplete else ""
    return f"The same {_steps(ranks)} both recorded{several}{end}"


def _steps(ranks: Sequence[RankComparison]) -> str:
    steps = max((each.steps for each in ranks), default=0)
    if not steps:
        return "in what came before the first step, as far as"
    return "for the one step that" if steps == 1 else f"for all {steps:,} steps that"


def _is_like(one: Divergence, other: Divergence) -> bool:
    """Whether two ranks part in the same way, at the same time."""
    fields = ("kind", "step", "eval_pass", "eval_step", "function", "source_a", "names")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def moment(divergence: Divergence) -> str:
    """Say when it was, as "in step 3"."""
    if divergence.step < 0:
        return "before the first step"
    told = f"in step {divergence.step}"
    if divergence.eval_step is not None:
        return f"{told} (step {divergence.eval_step} of evaluation pass {divergence.eval_pass})"
    return f"{told} (after evaluation)" if divergence.eval_pass else told
