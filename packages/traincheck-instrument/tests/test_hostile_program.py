"""What a program may do to names, marks and exceptions runs none of its code, and stays valid."""

import sys
from types import FunctionType

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import traincheck_instrument as traincheck

pytestmark = pytest.mark.torch


class HiddenArgs(Exception):  # noqa: N818  as a program may have it
    @property
    def args(self):
        raise AssertionError("asked")


class Text(str):
    __slots__ = ()

    def __getitem__(self, _):
        raise AssertionError("asked")


class Disguised:
    @property
    def __class__(self):
        raise AssertionError("asked")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (HiddenArgs("hidden"), "hidden"),
        (ValueError(Text("said")), "said"),
        (ValueError(Disguised()), ""),
        (ValueError("\ud800" + "x" * 300), "?" + "x" * 199),
        (ValueError(), ""),
    ],
    ids=["args", "text", "class", "long", "none"],
)
def test_an_exception_is_told_without_its_code(record, error, message):
    """The call that it left has its end in any case."""

    class Raises(nn.Module):
        def forward(self, _):
            raise error

    with record() as run, pytest.raises(type(error)):
        nn.Sequential(Raises())(torch.ones(1))

    assert {one["message"] for one in run.records("call_error")} == {message}


def test_what_is_tracked_is_not_asked_what_it_is(record):
    """Anything may be given to `track`, also what raises when it is asked for its class."""
    disguised = Disguised()
    with record() as run:
        assert traincheck.track(disguised, name="model") is disguised

    assert run.records("var") == []


def test_code_that_is_made_anew_in_each_step_is_told_once(record):
    """By file, line and function, however often it is compiled."""
    with record() as run:
        for _ in range(3):
            code = compile("lambda f, x: f(x)", "/home/me/made.py", "eval")
            FunctionType(code.co_consts[0], globals())(functional.relu, torch.ones(1))

    (source,) = (one for one in run.records("source") if one["file"] == "/home/me/made.py")
    assert {call["src"] for call in run.calls("torch.nn.functional.relu")} == {source["id"]}


class Modes(TorchDispatchMode):
    """Notes every operator; on a device that is not exact it would change what they return."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("tracker", ["subclass", "sampler"])
def test_a_dispatch_mode_sees_what_the_program_does(record, tracker):
    """And no operator of ours; two modes stay in their order."""

    def train():
        torch.manual_seed(0)
        model = traincheck.track(nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Modes() as outer, Modes() as inner:
            for _ in range(2):
                traincheck.start_step()
                optimizer.zero_grad()
                model(torch.ones(3, 4)).sum().backward()
                optimizer.step()
            assert _get_current_dispatch_mode_stack() == [outer, inner]
        return outer.seen, inner.seen

    plain = train()
    with record(tracker=tracker) as run:
        recorded = train()

    assert recorded == plain
    assert len(run.changes("data")) == 4


def test_names_of_arguments_are_cut_and_clean(record):
    """Whatever keyword a call was given."""
    with record() as run, pytest.raises(TypeError):
        functional.relu(torch.zeros(1), **{"\ud801": 1, "k" * 3000: 2})

    (call,) = run.calls("torch.nn.functional.relu")
    assert call["args"].keys() == {"input", "?", "k" * 200}


def test_an_argument_that_is_given_twice_is_told_once(record):
    """The call fails; the record of its begin is sound."""
    with record() as run, pytest.raises(TypeError):
        functional.relu(torch.zeros(1), input=torch.zeros(2))

    (call,) = run.calls("torch.nn.functional.relu")
    assert call["args"]["input"]["tensor"]["shape"] == [2]


def test_marks_on_a_parameter_are_encoded_like_other_values(record):
    """Large numbers, long texts, names that are no text."""
    model = nn.Linear(2, 2)
    model.weight.big = 2**80
    model.weight.text = "y" * 100_000
    model.weight.odd = "\ud800"
    setattr(model.weight, "\ud801", True)
    vars(model.weight)[1] = True
    with record() as run:
        traincheck.track(model, name="model")

    attributes = run.records("var")[0]["attributes"]
    assert attributes["big"] == {"int": str(2**80)}
    assert attributes["text"] == {"text": {"start": "y" * 200, "length": 100_000}}
    assert attributes["odd"] == "?"
    assert attributes["?"] is True


def test_files_and_variables_have_valid_names(record):
    """A path that is no UTF-8, and names that a program made up."""
    model = nn.Linear(2, 2)
    model.add_module("\ud800", nn.Linear(2, 2))
    code = compile("lambda: functional.relu(torch.ones(1))", "/home/caf\udce9/train.py", "eval")
    call = FunctionType(code.co_consts[0], globals())
    with record() as run:
        traincheck.track(model, name="model")
        call()

    assert {one["names"][0] for one in run.records("var")} >= {"model.?.weight"}
    assert run.records("source")[-1]["file"] == "/home/caf?/train.py"


def test_a_stage_that_there_is_not_is_told_and_not_entered(record, capsys):
    """The trace stays valid; the message says which stages there are."""
    with record() as run:
        run.recorder.faults.strict = False
        traincheck.annotate_stage("warm-up")
        traincheck.annotate_stage("testing")

    assert [one["stage"] for one in run.records("stage")] == ["testing"]
    assert "there is no stage 'warm-up'; it is one of init, training" in capsys.readouterr().err


def test_modules_nest_as_deep_as_without_a_recording(record):
    """Each call has a frame more; the limit is what it was afterwards."""
    model = nn.Linear(1, 1)
    for _ in range(200):
        model = nn.Sequential(model)
    before = sys.getrecursionlimit()

    assert model(torch.ones(1)).shape == (1,)
    with record() as run:
        assert model(torch.ones(1)).shape == (1,)

    assert len(run.calls("torch.nn.Sequential.forward")) == 200
    assert sys.getrecursionlimit() == before


def test_a_recursion_limit_of_the_program_stays(record):
    """What it sets while it is recorded is its own."""
    before = sys.getrecursionlimit()
    try:
        with record():
            sys.setrecursionlimit(before + 500)
        assert sys.getrecursionlimit() == before + 500
    finally:
        sys.setrecursionlimit(before)


def test_a_full_stack_is_no_matter_of_the_program(record, capsys):
    """Where the program has set the limit, what there is no room to record is a fault of ours."""

    def descend(frames):
        return descend(frames - 1) if frames else functional.relu(torch.ones(1))

    def has_room(frames):
        try:
            descend(frames)
        except RecursionError:
            return False
        return True

    before = sys.getrecursionlimit()
    deepest = next(frames for frames in range(before, 0, -1) if has_room(frames))
    with record() as run:
        run.recorder.faults.strict = False
        sys.setrecursionlimit(before)
        for frames in range(deepest - 40, deepest - 1):
            assert descend(frames) == 1

    assert "the begin of torch.nn.functional.relu: RecursionError" in capsys.readouterr().err
