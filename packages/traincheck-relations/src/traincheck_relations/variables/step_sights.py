"""What a training step showed of buffers, and of models that no optimizer trains."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import attrs

from traincheck_relations.api import Context
from traincheck_relations.variables.model_parts import ModelParts

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from traincheck_relations.api import Event, VariableState
    from traincheck_relations.variables.training_steps import TrainingStep

# A type of module and the name of its buffer; or the name of a model, and "".
Key: TypeAlias = "tuple[str, str]"


@attrs.frozen
class StepSight:
    """A variable, or a model without an optimizer, in a training step."""

    key: Key
    name: str
    has_changed: bool
    context: Context
    is_frozen: bool  # in evaluation mode, while the model it belongs to is in training mode
    is_evaluating: bool  # in evaluation mode from the begin of the step to its end
    is_trained: bool  # an optimizer holds something of its model

    @property
    def is_of_model(self) -> bool:
        """Whether it is a model."""
        return not self.key[1]


class StepSights:
    """Says of a training step which buffers and models changed."""

    def __init__(self, keys: frozenset[Key] | None = None) -> None:
        self.parts = ModelParts()
        self._keys = keys  # those that are asked for; None: all
        self._buffers: defaultdict[int, dict[int, None]] = defaultdict(dict)  # ids by process
        self._parameters: defaultdict[int, dict[int, None]] = defaultdict(dict)

    def on_var(self, event: Event) -> None:
        """Take the next `var` event."""
        self.parts.on_var(event)
        role, id_ = event.record["role"], event.record["id"]
        if role in {"buffer", "parameter"}:
            of = (self._buffers if role == "buffer" else self._parameters)[event.process]
            if event.after is None:
                of.pop(id_, None)
            else:
                of[id_] = None

    def of_step(self, event: Event, step: TrainingStep) -> Iterator[StepSight]:
        """Yield what was there during the step that ends at this event."""
        variables = event.run.variables()
        trained = self._trained(event)
        for id_ in self._buffers[event.process] if ("buffer", "data") in step.looked else ():
            state = variables.get(id_)
            owner = None if state is None else self.parts.owner(event, state)
            if state is None or owner is None or id_ in step.appeared:
                continue
            key = owner.type, state.names[0].rpartition(".")[2]
            if self._keys is None or key in self._keys:
                yield self._of_buffer(event, step, state, owner, key, trained)
        wants_models = self._keys is None or any(not attribute for _, attribute in self._keys)
        if wants_models and ("parameter", "data") in step.looked:
            yield from self._of_models(event, step)

    def _of_buffer(  # noqa: PLR0913, PLR0917  one buffer is all of these
        self,
        event: Event,
        step: TrainingStep,
        state: VariableState,
        owner: VariableState,
        key: Key,
        trained: Container[str],
    ) -> StepSight:
        training = owner.attributes.get("training")
        name = state.names[0].partition(".")[0]
        model = self.parts.module(event, name)
        is_steady = owner.id not in step.changed
        beside = [
            one for one in self.parts.tensors(event, owner.names[0]) if one.role == "parameter"
        ]
        context: Context = {
            "module.held": any(one.holders for one in beside),
            "module.requires_grad": any(one.attributes.get("requires_grad") for one in beside),
        }
        return StepSight(
            key=key,
            name=state.names[0],
            has_changed=state.id in step.changed,
            context=context if beside else {},
            is_frozen=training is False
            and model is not None
            and model.attributes.get("training") is True,
            is_evaluating=is_steady and training is False,
            is_trained=name in trained,
        )

    def _trained(self, event: Event) -> set[str]:
        """Return the names of the models of which an optimizer holds something."""
        variables = event.run.variables()
        states = (variables.get(id_) for id_ in self._parameters[event.process])
        return {one.names[0].partition(".")[0] for one in states if one is not None and one.holders}

    def _of_models(self, event: Event, step: TrainingStep) -> Iterator[StepSight]:
        variables = event.run.variables()
        models: dict[str, list[VariableState]] = {}
        for id_ in self._parameters[event.process]:
            if (state := variables.get(id_)) is not None:
                models.setdefault(state.names[0].partition(".")[0], []).append(state)
        for name, states in models.items():
            if any(one.holders for one in states):
                continue
            yield StepSight(
                key=(name, ""),
                name=name,
                has_changed=any(one.id in step.changed for one in states),
                context={},
                is_frozen=False,
                is_evaluating=False,
                is_trained=False,
            )
