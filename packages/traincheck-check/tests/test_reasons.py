"""Why an invariant had no occasion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traincheck_check.judging.claims import Claims
from traincheck_check.judging.judge import check_run
from traincheck_check.judging.outcome import outcome_of
from traincheck_relations.testing.traces import TraceBuilder
from traincheck_trace_schema.reading import open_runs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from traincheck_trace_schema.invariants import Invariant

CLIP = "torch.nn.utils.clip_grad_norm_"


@pytest.mark.parametrize(
    ("recording", "reason"),
    [
        ({"mode": "full", "functions": [CLIP]}, f"{CLIP} was never called"),
        ({"mode": "plan"}, f"{CLIP} was never called, or not recorded"),
        (
            {"mode": "full", "not_wrapped": {CLIP: "it is compiled"}},
            f"{CLIP} could not be recorded: it is compiled",
        ),
    ],
)
def test_a_function_without_a_call(
    tmp_path: Path, claims: tuple[Invariant, ...], recording: Mapping[str, object], reason: str
) -> None:
    """Never called, not recorded and not recordable are three different things."""
    trace = TraceBuilder(tmp_path, recording=recording)
    trace.rank().step(0)

    assert reasons(trace, claims)["clips"] == reason


def test_no_variable_was_tracked(tmp_path: Path, claims: tuple[Invariant, ...]) -> None:
    """The calls are there, but nobody looked at a variable."""
    trace = TraceBuilder(tmp_path)
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", "torch.optim.Optimizer.step")
    rank.step(0)
    with rank.call("torch.optim.SGD.step"):
        pass

    assert reasons(trace, claims)["moves-each"] == "no variable was tracked"


def test_variables_that_were_not_looked_at(tmp_path: Path, claims: tuple[Invariant, ...]) -> None:
    """Variables are there, but they were not observed around the call."""
    trace = TraceBuilder(tmp_path)
    rank = trace.rank()
    rank.function("torch.optim.SGD.step", "torch.optim.Optimizer.step")
    rank.variable("model.weight", data=None)
    rank.step(0)
    with rank.call("torch.optim.SGD.step"):
        pass

    assert reasons(trace, claims)["moves-each"] == "there was no occasion for it"


def reasons(trace: TraceBuilder, claims: tuple[Invariant, ...]) -> dict[str, str]:
    trace.write()
    (run,) = open_runs([trace.folder])
    outcome = outcome_of(check_run(run, Claims.of(claims)))
    return {each.invariant_id: each.reason for each in outcome.not_triggered}
