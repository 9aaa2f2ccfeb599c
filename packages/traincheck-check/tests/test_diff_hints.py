"""What a first difference points at."""

import pytest

from traincheck_check.comparing import hints
from traincheck_check.comparing.values import Parting

VALUE = Parting("", "1", "2")
CONTENT = Parting("", "", "", is_content=True)
MODE = Parting(".training", "True", "False")


@pytest.mark.parametrize(
    ("function", "name", "found", "is_first", "text"),
    [
        ("torch.manual_seed", "seed", VALUE, True, "seeded differently"),
        ("torch.nn.Dropout.forward", "self", MODE, False, "evaluation mode"),
        ("torch.nn.functional.dropout", "training", VALUE, False, "evaluation mode"),
        ("f", "context autocast.dtype", VALUE, False, "other precision"),
        ("f", "context grad_mode", VALUE, False, "no_grad()"),
        ("__main__.Net.forward", "x", CONTENT, True, "order of the samples"),
        ("torch.optim.SGD.__init__", "params", VALUE, True, "an optimizer holds"),
        ("torch.optim.SGD.__init__", "lr", VALUE, True, "another setting"),
        ("f", "x", VALUE, True, "what the program passes"),
    ],
)
def test_a_differing_argument_points_at_its_cause(function, name, found, is_first, text):
    """By what it is, and whether anything differed before."""
    assert text in hints.of_argument(function, name, found, is_first=is_first)


@pytest.mark.parametrize(("name", "found"), [("x", CONTENT), ("x", VALUE)])
def test_what_follows_from_another_difference_points_at_nothing(name, found):
    """The cause was told before."""
    assert hints.of_argument("f", name, found, is_first=False) == ""
    assert hints.of_result(is_first=False) == ""
    assert hints.of_variables("parameters", "data", is_before=False, is_first=False) == ""


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("torch.optim.Optimizer.zero_grad", "add up"),
        ("torch.nn.Module.eval", "evaluation mode"),
        ("torch.nn.utils.clip_grad_norm_", "not clipped"),
        ("torch.optim.lr_scheduler.LRScheduler.step", "scheduler does not step"),
        ("torch.optim.SGD.step", "parameters stay"),
        ("torch.nn.functional.dropout", "random numbers"),
        ("f", "run B passes it by"),
    ],
)
def test_a_missing_call_is_told_with_what_it_leads_to(function, text):
    """The more particular meaning wins."""
    assert text in hints.of_missing(function, "B", is_order=False)
    assert text not in hints.of_missing(function, "B", is_order=True)


@pytest.mark.parametrize(
    ("kind", "attribute", "is_before", "text"),
    [
        ("settings", "training", True, "evaluation mode"),
        ("settings", "requires_grad", True, "requires_grad is set"),
        ("settings", "held_by", True, "an optimizer holds"),
        ("settings", "lr", True, "started with"),
        ("settings", "lr", False, "scheduler"),
        ("parameters", "data", True, "other weights"),
        ("parameters", "data", False, "the step itself"),
        ("gradients", "grad", False, "how gradients are summed up"),
        ("buffers", "data", False, "the data and at the mode"),
    ],
)
def test_a_differing_variable_points_at_its_cause(kind, attribute, is_before, text):
    """By what it is, and whether a step was made."""
    assert text in hints.of_variables(kind, attribute, is_before=is_before, is_first=True)
