"""Steps that no mark begins: the loop is that of a trainer, which is not part of the script."""

from __future__ import annotations

import copy
import functools
import io
import weakref

import pytest
import torch
from torch import nn
from torch.nn.parallel import DataParallel

import traincheck_instrument as traincheck
from traincheck_instrument.current import Current

pytestmark = pytest.mark.torch


class Trainer:
    """Trains as the classes of libraries do."""

    def __init__(self, model, *, accumulation=1, evaluates=False, call=None):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.accumulation = accumulation
        self.evaluates = evaluates
        self.call = call or model

    def fit(self, steps):
        for _ in range(steps):
            self.model.train()
            for _ in range(self.accumulation):
                self.call(torch.ones(2, 3)).sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if self.evaluates:
                self.evaluate()

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            for _ in range(2):
                self.call(torch.ones(2, 3))


def net():
    return nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2))


@pytest.fixture
def unmarked(record):
    """Record a program without any mark of a step."""

    def recording(**settings):
        return record(steps_from=None, **settings)

    return recording


def places(run) -> list[str]:
    """Return the stages and steps, in short: `training`, `0`, `evaluation`, `eval 0.3`."""
    return [
        record["stage"]
        if record["kind"] == "stage"
        else str(record["step"])
        if record.get("eval_step") is None
        else f"eval {record['step']}.{record['eval_step']}"
        for record in run.records()
        if record["kind"] in {"stage", "step"}
    ]


def origins(run) -> list[str | None]:
    """Return what the headers say of the steps, each answer once."""
    return list(dict.fromkeys(header["steps_from"] for header in run.records("header")))


def test_a_step_begins_where_the_model_is_called_after_an_optimizer_step(unmarked):
    """Also with several calls for one optimizer step; the header says where steps come from."""
    with unmarked() as run:
        model = traincheck.track(net())
        Trainer(model, accumulation=3).fit(3)

    assert places(run) == ["training", "0", "1", "2"]
    assert origins(run) == [None, "model"]
    calls = {one["step"] for one in run.calls("torch.optim.SGD.step")}
    assert calls == {0, 1, 2}
    assert len({one["step"] for one in run.changes("data")}) == 3


def test_what_belongs_to_a_step_is_recorded_in_it(unmarked):
    """The call that begins a step is in it, whole: forward, backward, optimizer step."""
    with unmarked() as run:
        Trainer(traincheck.track(net())).fit(2)

    for function in ("torch.nn.Sequential.forward", "torch.Tensor.backward"):
        assert [one["step"] for one in run.calls(function)] == [0, 1]


def test_evaluation_mode_is_the_stage_evaluation(unmarked):
    """Each call of the model itself is an evaluation step, until it is called to train again."""
    with unmarked() as run:
        model = traincheck.track(net())
        trainer = Trainer(model, evaluates=True)
        trainer.evaluate()
        trainer.fit(2)

    steps = [place.partition(".")[0] for place in places(run)]
    assert steps == [
        *("evaluation", "eval -1", "eval -1"),
        *("training", "0", "evaluation", "eval 0", "eval 0"),
        *("training", "1", "evaluation", "eval 1", "eval 1"),
    ]


def test_evaluation_between_micro_batches_ends_with_the_next_of_them(unmarked):
    """The stage goes back to training although no step begins."""
    with unmarked() as run:
        model = traincheck.track(net())
        trainer = Trainer(model)
        model(torch.ones(2, 3)).sum().backward()
        trainer.evaluate()
        trainer.fit(1)

    assert [place for place in places(run) if "eval " not in place] == [
        *("training", "0", "evaluation", "training"),
    ]


def test_parts_wrappers_and_compiled_models_count(unmarked):
    """A trainer may call a part of the model, what it has wrapped it in, or has it compiled."""
    for wrap in (
        lambda model: lambda x: model[2](model[0](x)),
        DataParallel,
        lambda model: torch.compile(model, backend="eager"),
    ):
        with unmarked() as run:
            model = traincheck.track(net())
            Trainer(model, call=wrap(model)).fit(3)
            torch.compiler.reset()

        assert [place for place in places(run) if place.isdigit()] == ["0", "1", "2"]
        run.shards[0].unlink()


def test_a_model_that_the_program_compiles_or_wraps_itself_counts(unmarked):
    """`model = DataParallel(model)`: both are tracked, and each call is one."""
    with unmarked() as run:
        model = traincheck.track(net())
        model = traincheck.track(DataParallel(model))
        Trainer(model, evaluates=True).fit(2)

    assert len([place for place in places(run) if "eval " in place]) == 4
    assert [place for place in places(run) if place.isdigit()] == ["0", "1"]


def test_calls_that_do_not_train_begin_no_step(unmarked):
    """Another model, a copy, a call without gradients, in evaluation mode."""
    with unmarked() as run:
        model = traincheck.track(net())
        net()(torch.ones(1, 3))
        copy.deepcopy(model)(torch.ones(1, 3))
        with torch.no_grad():
            model(torch.ones(1, 3))
        model.eval()
        model(torch.ones(1, 3))

    assert not [place for place in places(run) if place.isdigit()]


def test_a_model_that_is_trained_in_evaluation_mode_has_steps(unmarked):
    """That is a silent error to be found, so that its steps have to be told apart."""
    with unmarked() as run:
        model = traincheck.track(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.eval()
        for _ in range(4):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()

    assert [place for place in places(run) if place.isdigit()] == ["0", "1", "2"]


def test_only_the_first_optimizer_counts(unmarked):
    """Two optimizers in one pass make one step, which begins after the first of them."""
    with unmarked() as run:
        model = traincheck.track(net())
        first, second = (
            torch.optim.SGD(part.parameters(), lr=0.1) for part in (model[0], model[2])
        )
        for _ in range(3):
            for optimizer in (first, second):
                model(torch.ones(1, 3)).sum().backward()
                optimizer.step()

    assert [place for place in places(run) if place.isdigit()] == ["0", "1", "2", "3"]
    assert [one["step"] for one in run.calls("torch.optim.SGD.step")] == [0, 1, 1, 2, 2, 3]


def test_a_mark_of_a_step_ends_the_counting(unmarked):
    """From then on no call of a model begins a step; the header says so."""
    with unmarked() as run:
        model = traincheck.track(net())
        Trainer(model).fit(2)
        traincheck.start_step()
        Trainer(model, evaluates=True).fit(3)

    assert places(run) == ["training", "0", "1", "2"]
    assert origins(run) == [None, "model", "hand"]


def test_a_marked_evaluation_stays_what_it_is(unmarked):
    """An evaluation loop of the script, which has marks, beside the training loop of a trainer."""
    with unmarked() as run:
        model = traincheck.track(net())
        trainer = Trainer(model)
        for _ in range(2):
            trainer.fit(1)
            model.eval()
            with traincheck.evaluation():
                for _ in range(2):
                    traincheck.start_eval_step()
                    model(torch.ones(1, 3))

    steps = [place.partition(".")[0] for place in places(run)]
    assert steps == [
        *("training", "0", "evaluation", "eval 0", "eval 0", "training"),
        *("1", "evaluation", "eval 1", "eval 1", "training"),
    ]


def test_a_call_in_a_marked_evaluation_begins_no_step(unmarked):
    """Not even in training mode and with gradients, which may be the error that is looked for."""
    with unmarked() as run:
        model = traincheck.track(net())
        trainer = Trainer(model)
        trainer.fit(1)
        with traincheck.evaluation():
            model(torch.ones(1, 3))
            assert run.recorder.clock.step == 0
        trainer.fit(1)

    assert places(run) == ["training", "0", "evaluation", "training", "1"]


def test_steps_are_sampled_as_others_are(unmarked):
    """Every second step: what is called in the others is not recorded."""
    with unmarked(interval=2) as run:
        Trainer(traincheck.track(net())).fit(4)

    assert [one["sampled"] for one in run.records("step")] == [True, False, True, False]
    assert {one["step"] for one in run.calls("torch.optim.SGD.step")} == {0, 2}


def test_nothing_is_put_onto_the_modules(unmarked):
    """A model is pickled and copied as ever; afterwards modules are called as before."""
    before = nn.Module.__call__
    model = net()
    names = [set(vars(module)) for module in model.modules()]
    hooks = [len(module._forward_pre_hooks) for module in model.modules()]
    stored = io.BytesIO()
    with unmarked():
        traincheck.track(model)
        Trainer(model).fit(1)
        torch.save(model, stored)
        assert [set(vars(module)) for module in model.modules()] == names
        assert [len(module._forward_pre_hooks) for module in model.modules()] == hooks

    assert nn.Module.__call__ is before
    stored.seek(0)
    assert type(torch.load(stored, weights_only=False)) is nn.Sequential


def test_no_model_is_kept_alive(unmarked):
    """What the program lets go is gone at once, the optimizer too."""
    with unmarked():
        trainer = Trainer(traincheck.track(net()))
        trainer.fit(1)
        kept = [weakref.ref(trainer.model), weakref.ref(trainer.optimizer)]
        del trainer

        assert [reference() for reference in kept] == [None, None]


def test_a_fault_of_the_counting_stays_ours(unmarked, monkeypatch, capsys):
    """The model's result comes all the same; the fault is told."""
    with unmarked() as run:
        run.recorder.faults.strict = False
        model = traincheck.track(net())
        monkeypatch.setattr("traincheck_instrument.steps.model_steps._parts_of", lambda _: 1 / 0)
        assert model(torch.ones(2, 3)).shape == (2, 2)

    assert "the counting of steps: ZeroDivisionError" in capsys.readouterr().err


def test_a_teacher_takes_part_in_the_step(unmarked):
    """Another tracked model, in evaluation mode, ends no step; what follows is recorded."""
    with unmarked(interval=2) as run:
        student = traincheck.track(net(), name="student")
        teacher = traincheck.track(net().eval(), name="teacher")
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(4):
            output = student(torch.ones(2, 3))
            with torch.no_grad():
                target = teacher(torch.ones(2, 3))
            (output - target).square().sum().backward()
            optimizer.step()
        teacher(torch.ones(2, 3))

    steps = [place.partition(".")[0] for place in places(run)]
    assert steps == ["training", "0", "1", "2", "3", "evaluation", "eval 3"]
    for function in ("torch.Tensor.backward", "torch.optim.SGD.step"):
        assert [one["step"] for one in run.calls(function)] == [0, 2]


def test_nothing_is_counted_after_a_mark_by_a_function_that_was_wrapped_in_turn(unmarked):
    """A profiler of the program stands on what watched the calls, which therefore stays."""
    before = nn.Module.__call__
    with unmarked() as run:
        model = traincheck.track(net())
        inner = nn.Module.__call__
        nn.Module.__call__ = functools.partialmethod(inner)
        traincheck.start_step()
        Trainer(model, evaluates=True).fit(2)
        nn.Module.__call__ = before

    assert places(run) == ["training", "0"]


def test_models_that_are_gone_are_forgotten(unmarked):
    """A program may track a new one in each of many rounds."""
    with unmarked():
        for _ in range(3):
            traincheck.track(net())
        assert Current.session.model_steps._roots == {}


def pass_of_marked_training(model, optimizer, *, before=lambda: None, after=lambda: None):
    """Make a pass of a loop that the source layer has marked, as far as it trains."""
    traincheck.start_step()
    before()
    model.train()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    after()


def ask(*models):
    with torch.no_grad():
        for model in models:
            model.eval()(torch.ones(2, 3))


def test_evaluation_that_nothing_marks_is_told_beside_marked_steps(record):
    """The model that is trained is called in evaluation mode, after its optimizer has stepped."""
    with record(steps_from="source", watches_evaluation=True) as run:
        model = traincheck.track(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ask(model)
        pass_of_marked_training(model, optimizer)
        pass_of_marked_training(model, optimizer, after=lambda: ask(model, model))
        pass_of_marked_training(model, optimizer)

    assert places(run) == [
        *("training", "0", "1"),
        *("evaluation", "eval 1.0", "eval 1.1"),
        *("training", "2"),
    ]
    assert origins(run) == ["source"]


def test_the_mark_at_the_return_to_training_ends_what_calls_have_begun(record):
    """A pass of evaluation may be followed by another, and by more of the step."""

    def validate():
        ask(model)
        traincheck.annotate_stage("training")  # as the source layer puts it after `model.train()`

    def validate_twice():
        validate()
        torch.nn.functional.relu(torch.ones(1))
        validate()

    with record(steps_from="source", watches_evaluation=True) as run:
        model = traincheck.track(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pass_of_marked_training(model, optimizer, after=validate_twice)

    assert places(run) == ["training", "0", *("evaluation", "eval 0.0", "training") * 2]
    assert "eval_step" not in run.calls("torch.nn.functional.relu")[0]


def test_marks_that_come_as_a_surprise_take_the_steps_and_leave_the_evaluation(record):
    """A module was found when the program ran; a mark of its evaluation takes that, too."""
    with record(steps_from=None, watches_evaluation=True) as run:
        model = traincheck.track(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pass_of_marked_training(model, optimizer, after=lambda: ask(model))
        pass_of_marked_training(model, optimizer)
        with traincheck.evaluation():
            traincheck.start_eval_step()
            ask(model)
        pass_of_marked_training(model, optimizer, after=lambda: ask(model))

    assert places(run) == [
        *("training", "0", "evaluation", "eval 0.0"),
        *("training", "1", "evaluation", "eval 1.0"),
        *("training", "2"),
    ]
    assert origins(run) == [None, "hand"]


def test_what_helps_to_train_is_no_evaluation_beside_marked_steps(record):
    """A teacher, an average of the weights, and the labels that a model makes for itself."""
    with record(steps_from="source", watches_evaluation=True) as run:
        model = traincheck.track(net())
        teacher = traincheck.track(net(), name="teacher")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            pass_of_marked_training(
                model,
                optimizer,
                before=lambda: ask(model, teacher),
                after=lambda: ask(teacher),
            )

    assert places(run) == ["training", "0", "1"]


def test_beside_marked_steps_calls_tell_nothing_unless_asked_for(record):
    """The program marks its evaluation, and what else is called in that mode is none."""
    with record(steps_from="source") as run:
        model = traincheck.track(net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pass_of_marked_training(model, optimizer, after=lambda: ask(model))

    assert places(run) == ["training", "0"]
    assert torch.nn.Module.__call__.__qualname__ == "Module._wrapped_call_impl"
