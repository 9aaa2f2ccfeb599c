"""What a program may do to names, marks and exceptions runs none of its code, and stays valid."""

from types import FunctionType

import pytest
import torch
from torch import nn
from torch.nn import functional

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

    (told,) = run.records("call_error")
    assert told["message"] == message


def test_names_of_arguments_are_cut_and_clean(record):
    """Whatever keyword a call was given."""
    with record() as run, pytest.raises(TypeError):
        functional.relu(torch.zeros(1), **{"\ud801": 1, "k" * 3000: 2})

    (call,) = run.calls("torch.nn.functional.relu")
    assert call["args"].keys() == {"input", "?", "k" * 200}


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
