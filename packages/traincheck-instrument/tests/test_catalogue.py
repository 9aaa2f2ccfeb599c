import pytest
import torch

from traincheck_instrument.api.catalogue import find_api


@pytest.fixture(scope="module")
def api():
    return {function.name: function for function in find_api("torch").functions}


def test_a_method_has_its_documented_name_and_those_it_overrides(api):
    """`SGD.step` is `torch.optim.SGD.step`, overrides `Optimizer.step`, and is known by file."""
    step = api["torch.optim.SGD.step"]

    assert step.bases == ("torch.optim.Optimizer.step",)
    assert "torch.optim.sgd.SGD.step" in step.aliases
    assert step.parameters[:1] == ("self",)


@pytest.mark.parametrize(
    "name",
    [
        "torch.Tensor.backward",
        "torch.autograd.backward",
        "torch.optim.Optimizer.zero_grad",
        "torch.nn.Linear.forward",
        "torch.nn.Module.train",
        "torch.nn.functional.cross_entropy",
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.init.normal_",
        "torch.distributed.all_reduce",
        "torch.GradScaler.step",
    ],
)
def test_what_a_training_step_calls_is_found(api, name):
    """Functions and methods are there under the name of the documentation."""
    assert name in api


@pytest.mark.parametrize(
    "name",
    [
        "torch.is_tensor",
        "torch.get_default_dtype",
        "torch.nn.Module.parameters",
        "torch.nn.Module.register_buffer",
        "torch.nn.modules.linear.Linear.forward",
        "torch.optim.sgd.SGD.step",
        "torch.FloatTensor.backward",
        "torch.jit.script",
    ],
)
def test_questions_set_up_and_second_names_are_left_out(api, name):
    """No predicate, getter or registration, and each function under one name only."""
    assert name not in api


def test_every_place_of_a_function_is_known(api):
    """`clip_grad_norm_` is replaced in the package and in the module that defines it."""
    places = api["torch.nn.utils.clip_grad_norm_"].places

    assert {place.owner for place in places} >= {
        torch.nn.utils,
        torch.nn.utils.clip_grad,
    }


def test_a_users_optimizer_is_described_as_an_override():
    """A class outside torch that overrides `step` has its own name and torch's as a base."""

    class Mine(torch.optim.Optimizer):
        def step(self, closure=None):
            return closure

    api = find_api("torch")
    step = api.override(Mine, "step")

    assert step is not None
    assert step.name.endswith("Mine.step")
    assert step.bases == ("torch.optim.Optimizer.step",)
    assert api.override(torch.optim.SGD, "step") is None


def test_a_function_answers_to_all_its_public_paths(api):
    """`torch.amp.GradScaler.step`, as the documentation has it, is `torch.GradScaler.step`."""
    assert "torch.amp.GradScaler.step" in api["torch.GradScaler.step"].names
