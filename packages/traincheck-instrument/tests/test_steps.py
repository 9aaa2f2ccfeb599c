"""What the begin and the end of steps, stages and passes of evaluation do to a recording."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import traincheck_instrument as traincheck

pytestmark = pytest.mark.torch


def train(model, optimizer, steps):
    for _ in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()


@pytest.fixture
def model():
    return nn.Linear(3, 2)


@pytest.fixture
def optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def test_a_pause_ends_with_the_step_then_the_gap_then_the_variables(record, model, optimizer):
    """All of it stands in the window that begins, so that it touches none before."""
    with record(interval=3) as run:
        traincheck.track(model, name="model")
        train(model, optimizer, steps=4)

    records = run.records()
    (gap,) = (at for at, one in enumerate(records) if one["kind"] == "gap")
    before, after = records[gap - 1], records[gap + 1]
    assert (before["kind"], before["step"], before["sampled"]) == ("step", 3, True)
    assert (after["kind"], after["event"], after["step"]) == ("var", "baseline", 3)
    assert records[gap]["step"] == 3


def test_in_a_step_that_is_left_out_nothing_is_written_but_its_begin(record, model, optimizer):
    """Nor does anything take note of what is called."""
    with record(interval=100) as run:
        traincheck.track(model, name="model")
        train(model, optimizer, steps=1)
        traincheck.start_step()
        before = run.recorder.overhead.threads_ns
        functional.relu(torch.ones(1))
        optimizer.step()
        assert run.recorder.overhead.threads_ns == before

    assert [one["kind"] for one in run.records() if one.get("step") == 1] == ["step"]


def test_a_stage_switches_recording_on_until_the_step_goes_on(record):
    """A checkpoint in a step that is left out is recorded; the rest of the step is not."""
    with record(interval=2) as run:
        for _ in range(2):
            traincheck.start_step()
        traincheck.annotate_stage("checkpointing")
        functional.relu(torch.ones(1))
        traincheck.annotate_stage("training")
        functional.relu6(torch.ones(1))

    assert len(run.calls("torch.nn.functional.relu")) == 1
    assert run.calls("torch.nn.functional.relu6") == []


def test_after_evaluation_a_recorded_step_goes_on_without_a_change_of_stage(record):
    """A script that marks the stage by hand, around a pass whose last step is left out."""
    with record(interval=2) as run:
        traincheck.annotate_stage("evaluation")
        with traincheck.evaluation():
            for _ in range(2):
                traincheck.start_eval_step()
        functional.relu(torch.ones(1))

    assert [one["sampled"] for one in run.records("step")] == [True, False]
    assert len(run.calls("torch.nn.functional.relu")) == 1
    assert [one["reason"] for one in run.records("gap")] == ["sampling"]


def test_a_call_that_raised_is_no_occasion_for_claims(record, model, optimizer):
    """It is not looked around at its end; what it changed is seen by the next look."""

    def closure():
        with torch.no_grad():
            model.weight.add_(1.0)
        raise KeyError("no loss")

    with record() as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        with pytest.raises(KeyError):
            optimizer.step(closure)
        traincheck.start_step()

    (call,) = run.calls("torch.optim.SGD.step")
    ends = [one for one in run.records("observe") if one.get("call") == call["id"]]
    assert {one["phase"] for one in ends} == {"begin"}
    (change,) = run.changes("data")
    assert "call" not in change
    assert change["between"][0] == ends[0]["seq"]


def test_after_a_fault_variables_are_told_again_at_the_next_step(record, model, monkeypatch):
    """Readers forget how they stood, as after any loss."""
    with record() as run:
        run.recorder.faults.strict = False
        traincheck.track(model, name="model")
        traincheck.start_step()
        with monkeypatch.context() as patch:
            patch.setattr(run.recorder.calls, "_write", None)
            functional.relu(torch.ones(1))
        for _ in range(2):
            traincheck.start_step()

    assert [one["reason"] for one in run.records("gap")] == ["fault"]
    baselines = [one for one in run.variables() if one["event"] == "baseline"]
    assert [one["step"] for one in baselines] == [1, 1]


def test_the_last_step_ends_with_the_run(record, model, optimizer):
    """What changed after its last call is seen, and is no change of another step."""
    with record() as run:
        traincheck.track(model, name="model")
        train(model, optimizer, steps=2)
        model.weight.data.zero_()

    assert run.changes("data")[-1]["step"] == 1
    last = [one for one in run.records() if one["kind"] in {"observe", "call_end"}][-1]
    assert (last["phase"], last["step"]) == ("step_end", 1)


@pytest.mark.parametrize("ends", ["gone", "left out", "never begun"])
def test_a_last_step_that_has_no_end_is_not_looked_at(record, ends):
    """The model is gone, or the step is not recorded, or there is none."""
    models = [nn.Linear(3, 2)]
    with record(interval=2) as run:
        traincheck.track(models[0], name="model")
        for _ in range({"gone": 1, "left out": 2, "never begun": 0}[ends]):
            traincheck.start_step()
        if ends == "gone":
            models.clear()

    looks = [one for one in run.records("observe") if one["phase"] == "step_end"]
    told = {"gone": {-1}, "left out": {-1, 0}, "never begun": set()}
    assert {one["step"] for one in looks} == told[ends]
    assert not [one for one in run.records("var") if one["event"] == "gone"]


def test_calls_name_all_lines_of_user_code_around_them(record):
    """With stacks: nearest first, the line that `src` names among them, and no line of torch."""

    class Block(nn.Module):
        def forward(self, x):
            return functional.relu(x)

    def deep(levels):
        return functional.relu6(torch.ones(1)) if levels == 0 else deep(levels - 1)

    block = nn.Sequential(Block())
    with record(with_stacks=True) as run:
        block(torch.ones(1))
        deep(100)

    sources = {one["id"]: one["function"] for one in run.records("source")}
    (call,) = run.calls("torch.nn.functional.relu")
    assert call["stack"][0] == call["src"]
    assert [sources[one] for one in call["stack"][:2]] == [
        "forward",
        "test_calls_name_all_lines_of_user_code_around_them",
    ]
    (call,) = run.calls("torch.nn.functional.relu6")
    assert [sources[one] for one in call["stack"]] == ["deep"] * 64


def test_without_stacks_calls_name_one_line(record):
    """Nobody asked for more."""
    with record() as run:
        functional.relu(torch.ones(1))

    (call,) = run.calls("torch.nn.functional.relu")
    assert "src" in call
    assert "stack" not in call


def test_a_stage_in_which_nothing_is_recorded_costs_no_look(record, model, optimizer):
    """A pass of evaluation that is left out, in a step that is: no gap, no baseline, no end."""
    with record(interval=4) as run:
        traincheck.track(model, name="model")
        with traincheck.evaluation():
            traincheck.start_eval_step()
        for _ in range(3):
            train(model, optimizer, steps=1)
            with traincheck.evaluation():
                traincheck.start_eval_step()
                model(torch.ones(4, 3))

    assert [one["stage"] for one in run.records("stage")].count("evaluation") == 4
    assert run.records("gap") == []
    told = [one for one in run.records() if one["kind"] in {"var", "observe"}]
    assert {one["step"] for one in told} == {-1, 0}


def test_a_recorded_step_is_looked_at_before_its_evaluation_is_left_out(record, model, optimizer):
    """What the program changed after the last call would otherwise be hidden by the pause."""
    with record(interval=2) as run:
        traincheck.track(model, name="model")
        for step in range(3):
            train(model, optimizer, steps=1)
            if step == 0:
                model.weight.data.mul_(3)
            with traincheck.evaluation():
                for _ in range(2):
                    traincheck.start_eval_step()
                    model(torch.ones(4, 3))

    (late,) = [one for one in run.changes("data") if "between" in one]
    assert (late["step"], late["eval_step"]) == (0, 0)
    ends = [one for one in run.records("observe") if one["phase"] == "step_end"]
    places = {(one["step"], one.get("eval_step")) for one in ends}
    assert {(0, 0), (1, 0), (2, 0)} <= places


def test_a_stage_is_looked_at_before_the_step_that_is_left_out_goes_on(record, model):
    """A checkpoint in a step that is not recorded: what it changes is seen where it happens."""
    with record(interval=2) as run:
        traincheck.track(model, name="model")
        for _ in range(2):
            traincheck.start_step()
        traincheck.annotate_stage("checkpointing")
        model(torch.ones(4, 3))
        model.weight.data.mul_(3)
        traincheck.annotate_stage("training")

    assert [one["step"] for one in run.changes("data")] == [1]


def test_facts_that_are_new_at_one_moment_are_told_in_one_header(record):
    """A header is long. Where steps come from, and what was compiled since, stand in one."""
    with record(steps_from=None) as run:
        for function in (torch.square, torch.sin):
            torch.compile(lambda x, function=function: function(x), backend="eager")
        traincheck.track(nn.Linear(3, 2), name="model")
        traincheck.start_step()
        traincheck.start_step()

    assert len(run.records("header")) <= 3  # the first, one at `track`, one at the step
    assert run.records("header")[-1]["steps_from"] == "hand"
