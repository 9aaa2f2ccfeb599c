"""`ConstantStateRelation`: flags of a model that a training run never changes.

- Parts of a model that are frozen, by name: their `requires_grad` is False, or they are not in
  training mode; and what is not frozen in a model that is so in part. Names say something about one
  model only, so such a claim is made of models whose parameters have the same names; of others
  there is no occasion.
- A model that is trained is in training mode.

Judged is each training step in which an optimizer stepped and nothing was evaluated, when the next
one begins.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import attrs

from traincheck_relations.api import EventMonitor, Example, Interests, RecordRef, Requirements
from traincheck_relations.conditions.properties import run_properties
from traincheck_relations.occasion import position_of
from traincheck_relations.of_model import model_in
from traincheck_relations.variables.constant_state_candidates import (
    STEP_END,
    TRAINS,
    ConstantStateProposer,
)
from traincheck_relations.variables.flags import FLAGS, ROLES, Flags
from traincheck_relations.variables.name_pattern import covers
from traincheck_relations.variables.training_steps import (
    FUNCTIONS,
    KINDS,
    TrainingStep,
    TrainingSteps,
)
from traincheck_trace_schema.invariants import (
    Params,
    VarNameParam,
    VarTypeParam,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traincheck_relations.api import Event, Gap, Monitor, Proposer

_MAX_NAMED = 3


class ConstantStateRelation:
    """Parts of a model that are frozen stay so; a model that is trained is in training mode."""

    name: ClassVar[str] = "ConstantStateRelation"
    group: ClassVar[str] = "var"

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""
        return ConstantStateProposer()

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""
        variable, _ = _parts(params)
        variables = {"parameter": frozenset(("requires_grad",))}
        if variable.attr_name == "training":
            variables["module"] = frozenset(("training",))
        return Requirements(functions=dict.fromkeys(FUNCTIONS, frozenset()), variables=variables)

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`."""
        return ConstantStateMonitor(params)

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
        variable, _ = _parts(params)
        if isinstance(variable, VarTypeParam):
            return "A model that is trained is in training mode"
        if variable.attr_name == "training":
            return f"{variable.var_name} is not in training mode while the model is trained"
        if variable.const_value is True:
            return f"The parameters of {variable.var_name} require a gradient (they are not frozen)"
        return f"The parameters of {variable.var_name} require no gradient (they are frozen)"

    def look_at(self, params: Params) -> str:
        """Say what to look at first where it is broken: the usual causes."""
        variable, _ = _parts(params)
        if isinstance(variable, VarTypeParam):
            return (
                "which eval() has no train() after it: a validation or a generation within an "
                "epoch, one that ends early; whether train() is called on this model, or on another"
            )
        if variable.attr_name == "training":
            return (
                "what calls train() after the part was frozen: model.train() puts every part of it "
                "into training mode again; whether freezing is done at all in this run, before the "
                "first step"
            )
        if variable.const_value is True:
            return (
                "what froze these parameters: requires_grad_(False) over more than was meant, a "
                "pattern of names, an adapter that was loaded for inference; whether the optimizer "
                "was made over them"
            )
        return (
            "whether the code that freezes these parameters runs in this run, and before the first "
            "step; whether they were made anew after it: replaced, resized, loaded, wrapped"
        )

    def likelihood(self, params: Params) -> float:
        """Say how likely it is that a breach is a bug."""
        # What is frozen is a setting, which the next run of the program may well have otherwise.
        return 0.8 if isinstance(_parts(params)[0], VarTypeParam) else 0.4


@attrs.define(eq=False)
class _Part:
    """A part of a model in one process: its variables, and those whose flag is another."""

    members: set[str] = attrs.field(factory=set)
    wrong: set[str] = attrs.field(factory=set)


class ConstantStateMonitor(EventMonitor):
    """Keeps for each part which of its flags are wrong; looks at that when a step has ended."""

    interests = Interests(kinds=KINDS, functions=FUNCTIONS)

    def __init__(self, params: Sequence[Params]) -> None:
        self._steps = TrainingSteps()
        self._training: list[int] = []
        self._claims: dict[int, tuple[VarNameParam, str]] = {}
        for index, param in enumerate(params):
            variable, layout = _parts(param)
            if isinstance(variable, VarNameParam):
                self._claims[index] = variable, layout
            else:
                self._training.append(index)
        self._covered: dict[tuple[str, str], tuple[int, ...]] = {}  # by role and name: claims
        self._state: defaultdict[tuple[int, int], _Part] = defaultdict(_Part)
        self._flags: defaultdict[tuple[int, str], Flags] = defaultdict(Flags)
        self._last: dict[int, RecordRef] = {}  # what last made a part wrong

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""
        step = self._steps.on_event(event)
        if event.kind == "var" and event.is_main:
            self._take(event)
        if step is None or step.has_evaluated:
            return ()
        return (*self._part_examples(event, step), *self._training_examples(event, step))

    def on_gap(self, gap: Gap) -> None:
        """Give up the step in which records are missing."""
        self._steps.on_gap(gap)

    def _take(self, event: Event) -> None:
        role = event.record["role"]
        if role not in FLAGS:
            return
        said = self._flags[event.process, role].take(event, FLAGS[role][0])
        for name, flag in said.items():
            for index in self._claims_about(role, name):
                part = self._state[event.process, index]
                part.members.discard(name)
                part.wrong.discard(name)
                if flag is not None:
                    part.members.add(name)
                    if flag is not self._claims[index][0].const_value:
                        part.wrong.add(name)
                        self._last[index] = event.ref()

    def _claims_about(self, role: str, name: str) -> tuple[int, ...]:
        key = role, name
        if key not in self._covered:
            self._covered[key] = tuple(
                index
                for index, (variable, _) in self._claims.items()
                if ROLES[variable.attr_name] == role and covers(variable.var_name, name)
            )
        return self._covered[key]

    def _part_examples(self, event: Event, step: TrainingStep) -> Iterator[Example]:
        layout = event.run.model()
        for index, (variable, wanted) in self._claims.items():
            part = self._state.get((event.process, index))
            is_looked_at = (ROLES[variable.attr_name], variable.attr_name) in step.looked
            if wanted != layout or part is None or not part.members or not is_looked_at:
                continue
            wrong = sorted(part.wrong)
            found = not variable.const_value
            yield _example(
                index,
                step,
                variable=wrong[0] if wrong else variable.var_name,
                evidence=(self._last[index],) if wrong else (),
                happened=f"{variable.attr_name} is {found} of {_few(wrong)} in a training step"
                if wrong
                else "",
            )

    def _training_examples(self, event: Event, step: TrainingStep) -> Iterator[Example]:
        if not self._training or ("module", "training") not in step.looked:
            return
        variables = event.run.variables()
        trained = {
            name.partition(".")[0]
            for state in variables.values()
            if state.role == "parameter" and state.holders and state.attributes.get("requires_grad")
            for name in state.names
        }
        flags = self._flags[event.process, "module"]
        for name in sorted(trained & flags.is_on.keys()):
            flag = flags.is_on[name]
            # If it changed in the step, nobody knows how it was when the model was called.
            if flags.id_of(name) in step.changed:
                continue
            for index in self._training:
                yield _example(
                    index,
                    step,
                    variable=name,
                    happened="" if flag else f"{name} is in evaluation mode in a training step",
                )


def _example(
    index: int,
    step: TrainingStep,
    *,
    variable: str,
    evidence: tuple[RecordRef, ...] = (),
    happened: str,
) -> Example:
    """Make an example of a step; it held if nothing happened."""
    end = step.end
    if end is None:
        raise ValueError("a step that was not looked at can't be judged")
    return Example(
        param=index,
        held=not happened,
        context=run_properties(end),
        at=position_of(end, None, variable),
        evidence=partial(_shown, evidence, end),
        happened=happened,
    )


def _shown(evidence: tuple[RecordRef, ...], end: Event) -> tuple[RecordRef, ...]:
    return (*evidence, end.ref())


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _parts(params: Params) -> tuple[VarTypeParam | VarNameParam, str]:
    variable, occasion, *layout = params
    if params == (TRAINS, STEP_END):
        return TRAINS, ""
    model = model_in(layout)
    if (
        not isinstance(variable, VarNameParam)
        or variable.attr_name not in ROLES
        or not isinstance(variable.const_value, bool)
        or (variable.const_value and variable.attr_name == "training")
        or occasion != STEP_END
        or model is None
    ):
        msg = (
            "ConstantStateRelation takes a VarTypeParam that modules are in training mode, or a "
            "VarNameParam that a flag is constant, with the ValueParam 'parameters'; and a step's "
            f"end; got {params!r}"
        )
        raise TypeError(msg)
    return variable, model
