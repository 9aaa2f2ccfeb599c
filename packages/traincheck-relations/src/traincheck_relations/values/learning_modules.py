"""Which modules learn: those of a tracked model in which a parameter requires a gradient."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from traincheck_relations.conditions.properties import FORWARD, object_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_relations.api import Call, RunState


@attrs.frozen(eq=False)
class _Model:
    """How many parameters each module of one process has, at any depth, and how many learn."""

    layout: int  # of the process, at which this was so
    is_told: bool  # whether of any parameter it is known
    parameters: Counter[str]
    learning: Counter[str]


class LearningModules:
    """Says which modules learn, by what is known of the parameters of a run."""

    def __init__(self) -> None:
        self._models: dict[int, _Model] = {}  # by process

    def may_learn(self, run: RunState, call: Call) -> bool:
        """Whether a call is one of a module that learns, or may be one.

        A module that has no parameters, as dropout, belongs to what is around it. Of a module
        without a name nobody knows if it learns: it is no part of a tracked model. What is called
        in no module at all may learn, and everything may where no parameters are told.
        """
        of = self._of(run)
        modules = _modules_around(call)
        if not of.is_told or not modules:
            return True
        name = modules[0]
        while name and not of.parameters[name]:
            name = name.rpartition(".")[0]
        return bool(name) and of.learning[name] > 0

    def is_tracked(self, run: RunState, call: Call) -> bool:
        """Whether a call is in a part of a tracked model, or may be: see `may_learn`."""
        modules = _modules_around(call)
        return not self._of(run).is_told or not modules or any(modules)

    def _of(self, run: RunState) -> _Model:
        model = self._models.get(run.process)
        # Where records were lost, what was known last holds until it is told anew.
        if model is None or (model.layout != run.layout and run.variables()):
            model = self._models[run.process] = _model(run)
        return model


def _modules_around(call: Call) -> Sequence[str]:
    """Return the names of the modules that a call is of or in, "" if one has none."""
    return [object_name(one) or "" for one in (call, *call.around()) if FORWARD in one.names]


def _model(run: RunState) -> _Model:
    parameters, learning = Counter[str](), Counter[str]()
    is_told = False
    for state in run.variables().values():
        flag = state.attributes.get("requires_grad")
        if state.role != "parameter" or not isinstance(flag, bool):
            continue
        is_told = True
        owners = [module for name in state.names for module in _owners(name)]
        parameters.update(owners)
        if flag:
            learning.update(owners)
    return _Model(run.layout, is_told, parameters, learning)


def _owners(name: str) -> Iterator[str]:
    """Yield the modules that have a parameter, the innermost first."""
    while name := name.rpartition(".")[0]:
        yield name
