"""What `VarPeriodicChangeRelation` claims, and how it stands in an invariant."""

from __future__ import annotations

import attrs

from traincheck_relations.of_model import PARAMETERS, model_in, of_model
from traincheck_relations.variables.step_sights import Key
from traincheck_trace_schema.invariants import Params, ValueParam, VarNameParam, VarTypeParam

_EVERY = "every"
_FROM_START = "from_start"


@attrs.frozen
class PeriodClaim:
    """What params claim."""

    key: Key
    every: int
    layout: str | None  # of the model that is meant; None: any
    is_from_start: bool = False  # the first change came after one period

    @property
    def is_of_model(self) -> bool:
        """Whether it is about the parameters of a model."""
        return not self.key[1]

    @classmethod
    def of(cls, params: Params) -> PeriodClaim:
        """Read params.

        Raises:
            TypeError: They are others than this relation has.
        """
        variable, *values = params
        named = {one.name: one.value for one in values if isinstance(one, ValueParam)}
        every, layout = named.get(_EVERY), model_in(values)
        from_start = named.get(_FROM_START, False)
        if (
            isinstance(every, int)
            and len(values) == len(named)
            and named.keys() <= {_EVERY, PARAMETERS, _FROM_START}
            and isinstance(from_start, bool)
        ):
            if isinstance(variable, VarTypeParam):
                return cls((variable.var_type, variable.attr_name), every, layout, from_start)
            if isinstance(variable, VarNameParam) and variable.attr_name == "data":
                return cls((variable.var_name, ""), every, layout, from_start)
        msg = (
            "VarPeriodicChangeRelation takes a variable, the ValueParam 'every', and perhaps the "
            f"ValueParam 'parameters', got {params!r}"
        )
        raise TypeError(msg)

    def params(self) -> Params:
        """Write it as params."""
        name, attribute = self.key
        variable = (
            VarNameParam(var_name=name, attr_name="data")
            if self.is_of_model
            else VarTypeParam(var_type=name, attr_name=attribute)
        )
        of = () if self.layout is None else (of_model(self.layout),)
        if self.is_from_start:
            of = (*of, ValueParam(name=_FROM_START, value=True))
        return variable, ValueParam(name=_EVERY, value=self.every), *of
