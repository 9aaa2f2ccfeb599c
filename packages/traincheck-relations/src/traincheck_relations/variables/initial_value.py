"""`InitialValueRelation`: a parameter begins training with elements that differ.

Ones or zeros where a value is drawn otherwise: an initialisation that was forgotten, a checkpoint
that was not loaded. The opposite is never claimed: what begins with zeros in one run may be loaded
in another. Whether a value is drawn is up to the model, so a claim is made of models whose
parameters have the same names.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from traincheck_relations.api import EventMonitor, Example, Interests, RecordRef, Requirements
from traincheck_relations.occasion import position_of
from traincheck_relations.of_model import is_of_model, model_in, of_model
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.variables.beginnings import FUNCTIONS, KINDS, Beginnings
from traincheck_trace_schema.invariants import Params, ValueParam, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Event, Gap, Monitor, Proposer, VariableState
    from traincheck_relations.variables.beginnings import Key, Start

_DIFFER = ValueParam(name="all_equal", value=False)
_RESUME = "torch.optim.Optimizer.load_state_dict"


class InitialValueRelation:
    """A parameter begins training with elements that differ."""

    name: ClassVar[str] = "InitialValueRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return InitialValueProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        _read(params)
        return Requirements(
            functions={OPTIMIZER_STEP: frozenset()},
            variables={"parameter": frozenset(("data",)), "module": frozenset(("training",))},
            observe_before=frozenset((OPTIMIZER_STEP,)),
        )

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return InitialValueMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        (type_, name), _ = _read(params)
        return f"The {name} of each {type_} begins training with elements that differ"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        _read(params)
        return (
            "where these parameters are made and initialised: torch.ones, zeros, an initialisation "
            "that is left out or done again; whether a checkpoint that should have been loaded "
            "into them was"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        _read(params)
        return 0.7


class InitialValueProposer:
    """Proposes parameters that began with elements that differ, in each module of a type.

    Not of training that was resumed: there each has been trained, whatever it began with.
    """

    interests = Interests(kinds=KINDS, functions=FUNCTIONS | {_RESUME})

    def __init__(self) -> None:
        self._beginnings = Beginnings()
        self._differ: set[tuple[Key, str]] = set()
        self._alike: set[tuple[Key, str]] = set()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if event.kind == "call_end" and event.call is not None and _RESUME in event.call.names:
            self._beginnings.give_up(event.process)
            return
        beginning = self._beginnings.on_event(event)
        if beginning is None or beginning.model is None:
            return
        for key, starts in beginning.starts.items():
            for one in starts:
                (self._alike if one.is_one_value else self._differ).add((key, beginning.model))

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        for (type_, name), model in sorted(self._differ - self._alike):
            yield (
                VarTypeParam(var_type=type_, attr_name=name),
                _DIFFER,
                of_model(model),
            )


class InitialValueMonitor(EventMonitor):
    """Says in each of the first training steps with what it began."""

    interests = Interests(kinds=KINDS, functions=FUNCTIONS)

    def __init__(self, params: Sequence[Params]) -> None:
        self._beginnings = Beginnings()
        self._claims: defaultdict[str, list[tuple[int, Key]]] = defaultdict(list)  # by model
        for index, param in enumerate(params):
            key, model = _read(param)
            self._claims[model].append((index, key))

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        beginning = self._beginnings.on_event(event)
        if beginning is None:
            return ()
        return [
            example
            for index, key in self._claims.get(beginning.model or "", ())
            for example in _examples(index, event, beginning.starts.get(key, ()))
        ]

    def on_gap(self, gap: Gap) -> None:
        """Give up what may have trained where records are missing."""
        self._beginnings.on_gap(gap)


def _examples(index: int, event: Event, starts: Sequence[Start]) -> Iterator[Example]:
    """Yield the examples of a training step: of each parameter that began wrong, else one."""
    wrong = [one for one in starts if one.is_one_value]
    for one in wrong or starts[:1]:
        yield Example(
            param=index,
            held=not wrong,
            # Where good runs differ, nothing that is known of a step can be the reason.
            context={},
            at=position_of(event, None, one.name),
            evidence=partial(_evidence, event, one.state),
            happened=f"all elements of {one.name} were equal when training began" if wrong else "",
        )


def _evidence(event: Event, state: VariableState) -> tuple[RecordRef, ...]:
    """Refer to the look at parameters, with the state that one had."""
    record = {**event.record, "names": state.names, "state": state.attributes}
    return (RecordRef(event.shard, event.rank, record),)


def _read(params: Params) -> tuple[Key, str]:
    """Return the key and the model that params speak of."""
    if len(params) == 3:  # noqa: PLR2004  as many as are named below
        variable, differ, model = params
        if isinstance(variable, VarTypeParam) and differ == _DIFFER and is_of_model(model):
            return (variable.var_type, variable.attr_name), str(model_in(params))
    msg = (
        "InitialValueRelation takes a VarTypeParam, the ValueParam 'all_equal' (false) and the "
        f"ValueParam 'parameters', got {params!r}"
    )
    raise TypeError(msg)
