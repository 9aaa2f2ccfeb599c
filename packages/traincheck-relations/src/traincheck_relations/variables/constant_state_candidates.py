"""Which flags of a model may be constant: those that were so in all training steps."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from traincheck_relations.api import Event, Interests
from traincheck_relations.of_model import of_model
from traincheck_relations.variables.flags import FLAGS, ConstantFlags, Flags
from traincheck_relations.variables.name_pattern import summarise
from traincheck_relations.variables.training_steps import FUNCTIONS, KINDS, TrainingSteps
from traincheck_trace_schema.invariants import (
    OccasionParam,
    Params,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

STEP_END = OccasionParam(phase="step_end")
TRAINS = VarTypeParam(var_type="torch.nn.Module", attr_name="training", const_value=True)
# More parts than these are no decision that somebody made.
_MAX_PARTS = 20


class ConstantStateProposer:
    """Proposes the parts that were off in all training steps, and that models train."""

    interests = Interests(kinds=KINDS, functions=FUNCTIONS)

    def __init__(self) -> None:
        self._steps = TrainingSteps()
        self._flags: defaultdict[tuple[int, str], Flags] = defaultdict(Flags)
        self._constant: dict[
            tuple[int, str, str], ConstantFlags
        ] = {}  # by process, layout and role
        self._has_trained = False

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        step = self._steps.on_event(event)
        if step is not None and not step.has_evaluated:
            self._take(event)
        if event.kind == "var" and event.is_main:
            role = event.record["role"]
            if role in FLAGS:
                self._flags[event.process, role].take(event, FLAGS[role][0])

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        if self._has_trained:
            yield TRAINS, STEP_END
        claims: set[tuple[str, str, str, bool]] = set()
        for (_, layout, role), constant in sorted(self._constant.items(), key=lambda one: one[0]):
            for value in (False, True) if role == "parameter" and constant.off else (False,):
                names = constant.on if value else constant.off
                others = constant.others | (constant.off if value else constant.on)
                patterns = summarise(names, others)
                if len(patterns) <= _MAX_PARTS:
                    claims.update((role, pattern, layout, value) for pattern in patterns)
        for role, pattern, layout, value in sorted(claims):
            attribute, var_type = FLAGS[role]
            yield (
                VarNameParam(
                    var_name=pattern, var_type=var_type, attr_name=attribute, const_value=value
                ),
                STEP_END,
                of_model(layout),
            )

    def _take(self, event: Event) -> None:
        if (layout := event.run.model()) is not None:
            self._take_flags(event.process, layout)
        modules = self._flags[event.process, "module"].is_on
        self._has_trained |= any(on and "." not in name for name, on in modules.items())

    def _take_flags(self, process: int, layout: str) -> None:
        for role in FLAGS:
            flags = self._flags[process, role]
            key = process, layout, role
            if key in self._constant:
                self._constant[key].take(flags)
            else:
                self._constant[key] = ConstantFlags.of(flags)
