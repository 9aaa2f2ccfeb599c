"""The param of a claim that is made of one model: which one.

Names of parts, and what a program decides once, say nothing about another model. Of a run with
another one such a claim has no occasion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_trace_schema.invariants import ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traincheck_trace_schema.invariants import Param

PARAMETERS = "parameters"


def of_model(model: str) -> ValueParam:
    """Return what says that a claim is made of a model, which `RunState.model` gives."""
    return ValueParam(name=PARAMETERS, value=model)


def is_of_model(param: Param) -> bool:
    """Whether a param says of which model a claim is made."""
    return isinstance(param, ValueParam) and param.name == PARAMETERS


def model_in(params: Iterable[Param]) -> str | None:
    """Return the model that a claim is made of; None: of any."""
    return next(
        (
            str(one.value)
            for one in params
            if isinstance(one, ValueParam) and one.name == PARAMETERS
        ),
        None,
    )
