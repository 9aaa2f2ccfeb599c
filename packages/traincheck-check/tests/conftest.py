"""Traces of small runs, and invariants to check them against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from traincheck_relations.testing.traces import TraceBuilder, train
from traincheck_trace_schema.invariant_file import write_invariants
from traincheck_trace_schema.invariants import (
    APIParam,
    Clause,
    ConditionGroup,
    Conjunction,
    Invariant,
    Param,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GROUP = "parent_func_call_pre"


class WriteRun(Protocol):
    def __call__(  # noqa: PLR0913  each is a way in which runs differ
        self,
        name: str = ...,
        steps: int = ...,
        *,
        stuck: Sequence[str] = ...,
        since: int = ...,
        complete: bool = ...,
        tracker: str = ...,
    ) -> Path: ...


def contains(
    function: str, child: Param, *, when: tuple[str, object] | None = None, id_: str = ""
) -> Invariant:
    """Claim that calls contain something, always or where a property has a value."""
    clauses = (
        (Clause(type="constant", prop_name=when[0], values=(when[1],)),)
        if when
        else "Unconditional"
    )
    return Invariant(
        id=id_ or f"{function} {child}",
        text_description=f"Each call of {function} contains {child}",
        relation="APIContainRelation",
        params=(APIParam(api_full_name=function), child),
        precondition={GROUP: ConditionGroup(preconditions=(Conjunction(clauses=clauses),))},
        tracker="subclass",
    )


def change(attribute: str = "data", quantifier: str = "each", **values: str) -> VarTypeParam:
    return VarTypeParam(
        var_type="torch.nn.Parameter", attr_name=attribute, quantifier=quantifier, **values
    )


STEP = "torch.optim.Optimizer.step"
MOVES_EACH = contains(STEP, change(), when=("var.held_by_caller", True), id_="moves-each")
MOVES_SOME = contains(STEP, change(quantifier="some"), id_="moves-some")
REACHES_EACH = contains(
    "torch.Tensor.backward",
    change("grad", pre_value="none", post_value="non_zero"),
    id_="reaches-each",
)
CLIPS = contains(
    "torch.nn.utils.clip_grad_norm_", APIParam(api_full_name="torch.Tensor.mul_"), id_="clips"
)
CLAIMS = (MOVES_EACH, MOVES_SOME, REACHES_EACH, CLIPS)


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Return a function that writes the trace of a run; its name is run id and folder."""

    def write(  # noqa: PLR0913  each is a way in which runs differ
        name: str = "run",
        steps: int = 6,
        *,
        stuck: Sequence[str] = (),
        since: int = 0,
        complete: bool = True,
        tracker: str = "subclass",
    ) -> Path:
        trace = TraceBuilder(tmp_path / name, run_id=name, tracker=tracker)
        train(trace.rank(), steps, stuck=stuck, since=since)
        return trace.write(complete=complete).parent

    return write


@pytest.fixture
def claims_file(tmp_path: Path) -> Path:
    path = tmp_path / "invariants.json"
    write_invariants(path, CLAIMS)
    return path


@pytest.fixture
def claims() -> tuple[Invariant, ...]:
    """Return `CLAIMS`: on steps, each and some; on backward; and one that never applies."""
    return CLAIMS
