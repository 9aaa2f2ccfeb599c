"""Builds runs that train a small model with batch norm, and asks a relation about them.

>>> import tempfile
>>> from pathlib import Path
>>> from traincheck_relations.containment.contain import APIContainRelation
>>> runs = Runs(APIContainRelation(), TraceBuilder(Path(tempfile.mkdtemp())))
>>> runs.model().train(range(3))
>>> sorted(runs.proposals().values())[1]
'Each call of torch.optim.Optimizer.step changes the data of each torch.nn.Parameter that it holds'
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from traincheck_relations.engine import Watch, propose
from traincheck_relations.testing.traces import BuiltVariable, TraceBuilder, optimizer, tensor
from traincheck_trace_schema.reading import open_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traincheck_relations.api import Example, Relation
    from traincheck_relations.engine import Fault
    from traincheck_relations.testing.traces import ShardBuilder
    from traincheck_trace_schema.invariants import Params
    from traincheck_trace_schema.values import Json

STEP = "torch.optim.Optimizer.step"
NORM = "torch.nn.BatchNorm1d"
MEAN = "model.bn.running_mean"
ROLES = {
    "parameter": ("data", "grad", "requires_grad"),
    "buffer": ("data",),
    "module": ("training",),
    "optimizer": ("lr", "weight_decay"),
}


class ModelRun:
    """A process that trains `model`: a layer `fc`, a batch norm `bn`, and an optimizer."""

    def __init__(self, rank: ShardBuilder, *, held: bool = True) -> None:
        self.rank = rank
        self._count = 0
        self.shapes: dict[str, Sequence[int]] = {}  # where it is not (2,)
        self.variables: dict[str, BuiltVariable] = {}
        self.held_by = ("optimizer0",) if held else ()
        rank.function("torch.optim.SGD.step", STEP)
        self.add("model", role="module", type_="Net", training=True)
        self.add("model.bn", role="module", type_=NORM, training=True)
        for name in ("model.fc.weight", "model.bn.weight"):
            self.parameter(name)
        self.add(MEAN, role="buffer", type_="torch.Tensor", data=tensor("start"))
        self.group("optimizer0.group0", lr=0.1, weight_decay=0.01)
        rank.stage("training")

    def add(self, name: str, *, role: str, type_: str, **attributes: Json) -> None:
        """Tell of a variable."""
        self.variables[name] = self.rank.variable(
            name, held_by=(), role=role, type_=type_, **attributes
        )

    def parameter(self, name: str, **attributes: Json) -> None:
        """Tell of a parameter that the optimizer holds."""
        told = {"data": tensor("start"), "grad": None, "requires_grad": True, **attributes}
        self.variables[name] = self.rank.variable(
            name, held_by=self.held_by, role="parameter", type_="torch.nn.Parameter", **told
        )

    def group(self, name: str, **attributes: Json) -> None:
        """Tell of a group of an optimizer."""
        self.add(name, role="optimizer", type_="torch.optim.SGD", **attributes)

    def hold(self, name: str, *holders: tuple[str, int]) -> None:
        """Tell by which groups a parameter is held from now on."""
        held = [{"optimizer": name, "group": group} for name, group in holders]
        one = self.variables[name]
        self.variables[name] = BuiltVariable(one.id, {**one.fields, "held_by": held})
        self.rank.change(self.variables[name])

    def change(self, name: str, *, during: int | None = None, **attributes: Json) -> None:
        """Tell that attributes of a variable changed."""
        self.rank.change(self.variables[name], during=during, **attributes)

    def move(self, *names: str, during: int | None = None) -> None:
        """Tell that the data of variables changed."""
        self._count += 1
        for name in names:
            shape = self.shapes.get(name, (2,))
            data = tensor(f"{name} {self._count}", shape=shape)
            self.change(name, during=during, data=data)

    def look(self, phase: str, call: int | None = None) -> None:
        """Tell that all variables were looked at."""
        for role, attributes in ROLES.items():
            if call is None or role in {"parameter", "optimizer"}:
                function = None if call is None else "torch.optim.SGD.step"
                self.rank.observe(phase, call, function, roles=(role,), attributes=attributes)

    @contextmanager
    def stepping(self, name: str = "optimizer0") -> Iterator[int]:
        """Add a step of the optimizer, around which variables are looked at."""
        with self.rank.call("torch.optim.SGD.step", of=optimizer(name)) as call:
            self.look("begin", call)
            yield call
            self.look("end", call)

    def train(
        self,
        steps: Sequence[int],
        *,
        moves: Sequence[str] = (MEAN,),
        gradients: Sequence[str] = ("model.fc.weight", "model.bn.weight"),
        is_evaluated: bool = False,
        **modes: bool,
    ) -> None:
        """Add training steps, in each of which these variables change.

        Args:
            steps: Their numbers.
            moves: The variables that change before the optimizer steps.
            gradients: The parameters that have a gradient, and that the optimizer changes.
            is_evaluated: Whether there is a pass of evaluation in each step.
            modes: Modules whose mode changes in the first step: `bn` is `model.bn`.
        """
        for step in steps:
            self.rank.step(step)
            for name, training in modes.items() if step == steps[0] else ():
                name_in_model = name if name == "model" else f"model.{name}"
                self.change(name_in_model, training=training)
            self.move(*moves)
            for name in gradients:
                self.change(name, grad=tensor(f"g{step}"))
            with self.stepping() as call:
                self.move(*gradients, during=call)
            if is_evaluated:
                self.rank.stage("evaluation")
                self.rank.eval_step(0)
                self.rank.stage("training")
            self.look("step_end")

    def end(self) -> None:
        """Begin a step in which nothing happens any more."""
        self.rank.step(10_000)


class Runs:
    """Asks one relation about a trace."""

    def __init__(self, relation: Relation, trace: TraceBuilder) -> None:
        self.relation = relation
        self.trace = trace

    def model(self, rank: int = 0, *, held: bool = True) -> ModelRun:
        """Begin the run of a rank."""
        return ModelRun(self.trace.rank(rank), held=held)

    def examples(self, *params: Params) -> list[Example]:
        """Return what the monitor of some params makes of the trace."""
        self.trace.write()
        name = self.relation.name
        watch = Watch(open_run([self.trace.folder]), {name: self.relation}, {name: params})
        found = [example for _, example in watch]
        _insist_on_no_fault(watch.faults)
        return found

    def proposals(self) -> Mapping[Params, str]:
        """Return what is proposed, each with what it says."""
        self.trace.write()
        name = self.relation.name
        found = propose(open_run([self.trace.folder]), {name: self.relation})
        _insist_on_no_fault(found.faults)
        return {params: self.relation.describe(params) for params in found.candidates[name]}


def _insist_on_no_fault(faults: Sequence[Fault]) -> None:
    if faults:
        raise AssertionError(f"the relation failed: {faults[0].error}")


def verdicts(examples: Sequence[Example]) -> list[bool]:
    """Return whether each example held."""
    return [example.held for example in examples]


def broken(examples: Sequence[Example]) -> list[int]:
    """Return the steps of the examples that did not hold."""
    return [example.at.window.step for example in examples if not example.held]
