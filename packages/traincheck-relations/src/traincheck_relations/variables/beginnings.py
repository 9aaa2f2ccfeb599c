"""What the parameters of a model hold when training begins, as far as a trace tells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_relations.api import VariableState
from traincheck_relations.order.protocol import OPTIMIZER_STEP
from traincheck_relations.value import payload
from traincheck_relations.variables.model_parts import ModelParts
from traincheck_relations.variables.rank_comparison import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_relations.api import Event, Gap

KINDS = frozenset(("step", "var", "observe", "call_end"))
FUNCTIONS = frozenset((OPTIMIZER_STEP,))

Key: TypeAlias = "tuple[str, str]"  # a type of module, and the name of its parameter

_FEWEST = 4  # elements; fewer may be equal by accident, in half precision
_STEPS = 10  # training steps that are judged; what they began with does not change any more


@attrs.frozen
class Start:
    """A parameter as training found it."""

    state: VariableState
    is_one_value: bool  # all its elements are equal

    @property
    def name(self) -> str:
        """Its first name."""
        return self.state.names[0]


@attrs.frozen
class Beginning:
    """The parameters with which a process began to train, those that the trace tells of."""

    model: str | None
    starts: Mapping[Key, tuple[Start, ...]]


@attrs.define(eq=False)
class _Process:
    last: int = -1  # the training step that began last
    is_blind: bool = False  # it may have trained where nobody looked
    beginning: Beginning | None = None
    judged: set[int] = attrs.field(factory=set)  # training steps


class Beginnings:
    """Follows main processes to the first steps of their optimizers."""

    def __init__(self) -> None:
        self._parts = ModelParts()
        self._processes: defaultdict[int, _Process] = defaultdict(_Process)

    def on_event(self, event: Event) -> Beginning | None:
        """Take the next event of `KINDS`, calls of `FUNCTIONS`.

        Returns:
            With what the process began to train, once in each of its first training steps in which
            an optimizer steps.
        """
        if not event.is_main:
            return None
        process = self._processes[event.process]
        if event.kind == "observe":
            return self._on_observe(event, process)
        if process.beginning is None:
            if event.kind == "step":
                _take_step(event, process)
            elif event.kind == "var":
                self._parts.on_var(event)
            else:
                process.is_blind = True  # an optimizer has stepped, and nobody looked before
        return None

    def on_gap(self, gap: Gap) -> None:
        """Give up a process of which records were lost before it trained.

        Of what sampling left out the steps tell.
        """
        if gap.reason != "sampling":
            self.give_up(gap.process)

    def give_up(self, process: int) -> None:
        """Take note that a process, if it has not begun, has trained what it begins with."""
        self._processes[process].is_blind = True

    def _on_observe(self, event: Event, process: _Process) -> Beginning | None:
        number = event.window.step
        if (
            len(process.judged) >= _STEPS
            or number in process.judged
            or not _is_before_step(event)
            or (process.is_blind and process.beginning is None)
        ):
            return None
        if process.beginning is None:
            process.beginning = self._beginning(event)
        process.judged.add(number)
        return process.beginning

    def _beginning(self, event: Event) -> Beginning:
        starts: defaultdict[Key, list[Start]] = defaultdict(list)
        for key, start in self._starts(event):
            starts[key].append(start)
        return Beginning(event.run.model(), {key: tuple(of) for key, of in starts.items()})

    def _starts(self, event: Event) -> Iterator[tuple[Key, Start]]:
        for state in event.run.variables().values():
            if state.role != "parameter" or not is_whole(state):
                continue
            name = state.names[0].rpartition(".")[2]
            owner = self._parts.owner(event, state)
            is_one_value = _is_one_value(state)
            # A name that begins so is not the program's: FSDP has a piece of `_flat_param`.
            if owner is not None and is_one_value is not None and not name.startswith("_"):
                yield (owner.type, name), Start(state, is_one_value)


def _take_step(event: Event, process: _Process) -> None:
    if event.record.get("eval_step") is not None:
        return
    number = event.window.step
    if number != process.last + 1 or not event.record.get("sampled", True):
        process.is_blind = True
    process.last = number


def _is_before_step(event: Event) -> bool:
    """Whether an observation shows the data of parameters before an optimizer changes it."""
    record = event.record
    return (
        record["phase"] == "begin"
        and event.call is not None
        and OPTIMIZER_STEP in event.call.names
        and "parameter" in record["roles"]
        and "data" in record["attributes"]
    )


def _is_one_value(state: VariableState) -> bool | None:
    """Whether all elements of a parameter are equal; None if that is not known.

    Changes tell it until an optimizer has stepped; of what is loaded later it is not known.
    """
    data = payload(state.attributes.get("data"), "tensor")
    shape = data.get("shape") or ()
    if None in shape or prod(shape) < _FEWEST:
        return None
    told = (data.get("facts") or {}).get("all_equal")
    return told if isinstance(told, bool) else None
