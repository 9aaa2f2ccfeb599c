"""Which calls are part of the training protocol."""

import pytest

from traincheck_relations.api import Call, Callee
from traincheck_relations.order.protocol import are_related, owner_of, place, protocol_function
from traincheck_relations.testing.traces import optimizer

STEP = "torch.optim.Optimizer.step"
SCHEDULER_STEP = "torch.optim.lr_scheduler.LRScheduler.step"


def call(*documented, **begin):
    callee = Callee(documented[0], documented, frozenset(documented), {})
    return Call(callee, None, {"id": 0, **begin})


@pytest.mark.parametrize(
    ("documented", "function"),
    [
        (("torch.optim.SGD.step", STEP), STEP),
        (("torch.GradScaler.step",), STEP),
        (("torch.nn.Module.zero_grad",), "torch.optim.Optimizer.zero_grad"),
        (("torch.autograd.backward",), "torch.Tensor.backward"),
        ((SCHEDULER_STEP,), SCHEDULER_STEP),
        (("library.Engine.backward",), "library.Engine.backward"),
        (("torch.profiler.profile.step",), None),
        (("torch.nn.Linear.forward",), None),
        (("torch.nn.Module.train",), None),
        (("torch.optim.Optimizer.state_dict",), None),
    ],
)
def test_a_call_is_known_by_what_it_is_called_or_stands_for(documented, function):
    """By the most general of its names, so that it speaks about other programs too."""
    assert protocol_function(call(*documented)) == function


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (STEP, SCHEDULER_STEP, True),
        (SCHEDULER_STEP, STEP, True),
        (SCHEDULER_STEP, "torch.optim.Optimizer.zero_grad", False),
        (STEP, "torch.nn.Module.train", False),
        (STEP, STEP, False),
    ],
)
def test_only_some_orders_are_rules(one, other, expected):
    """A scheduler may step before gradients are cleared, or after."""
    assert are_related(one, other) is expected


def test_functions_are_sorted_as_a_step_has_them():
    """What is unknown comes last."""
    functions = ["library.f", SCHEDULER_STEP, STEP, "torch.Tensor.backward"]

    assert sorted(functions, key=place) == functions[::-1]


@pytest.mark.parametrize(
    ("begin", "owner"),
    [
        ({"self": optimizer("optimizer1")}, "optimizer1"),
        ({"args": {"optimizer": optimizer("optimizer2")}}, "optimizer2"),
        ({"args": {"optimizer": None}}, None),
        ({"args": None}, None),
    ],
)
def test_a_call_is_about_its_object_or_the_optimizer_that_it_is_given(begin, owner):
    """A scaler steps for the one that it is given."""
    assert owner_of(call("f", **begin)) == owner


def test_a_module_that_clears_gradients_is_no_optimizer():
    """`netD.zero_grad()` counts for whatever optimizer holds its parameters."""
    module = {"object": {"type": "Net", "name": "netD", "attributes": {"training": True}}}

    assert owner_of(call("torch.nn.Module.zero_grad", self=module)) is None
    assert owner_of(call(STEP, self=optimizer("optimizer0"))) == "optimizer0"
