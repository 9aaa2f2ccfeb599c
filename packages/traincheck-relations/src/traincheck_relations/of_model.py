"""The param of a claim that is made of one model: which one.

Names of parts, and what a program decides once, say nothing about another model. Of a run with
another one such a claim has no occasion.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs

from traincheck_trace_schema.invariants import Params, ValueParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


@attrs.frozen
class ClaimOfModels:
    """A claim that says the same of every model, and is made of each by itself."""

    relation: str
    params: Params  # all but the model

    def of(self, model: str) -> Params:
        """Return how it stands in an invariant."""
        return (*self.params, of_model(model))

    def model(self, params: Params) -> str:
        """Return the model of which it is made.

        Raises:
            TypeError: The params are those of something else.
        """
        model = model_in(params)
        if model is None or params != self.of(model):
            raise TypeError(
                f"{self.relation} takes {', '.join(map(repr, self.params))} and the ValueParam "
                f"{PARAMETERS!r}, got {params!r}"
            )
        return model

    def places(self, params: Sequence[Params]) -> Mapping[str, Sequence[int]]:
        """Return by model where in a sequence of params it is claimed.

        Raises:
            TypeError: as `model`.
        """
        places: defaultdict[str, list[int]] = defaultdict(list)
        for index, param in enumerate(params):
            places[self.model(param)].append(index)
        return dict(places)
