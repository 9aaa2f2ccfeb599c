"""What is told of the tensors that a model is given and a loss judges, and whose call it was."""

import gc
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument.content.facts import MOST_BYTES, facts_of


class Net(nn.Module):
    """A model of the program's own."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, rows, options=None):
        del options
        return self.inner(rows)


class Attention(nn.Module):
    """One whose dropout is that of the function it calls."""

    def forward(self, rows):
        return functional.scaled_dot_product_attention(rows, rows, rows, None, 0.25)


def args_of(call):
    return {
        name: value["tensor"]
        for name, value in call["args"].items()
        if isinstance(value, dict) and "tensor" in value
    }


@given(
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=3),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
    seed=st.integers(0, 2**31),
)
def test_probabilities_are_known_by_their_elements(shape, dtype, seed):
    """What a softmax gives sums to one in each row, in every precision; scores do not."""
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) - 20

    probabilities = facts_of(scores.softmax(-1).to(dtype))
    logarithms = facts_of(scores.log_softmax(-1).to(dtype))

    is_matrix = {} if len(shape) > 2 else {"rows_are_log_shares": False}
    assert probabilities == {
        "finite": True,
        "in_unit_interval": True,
        "rows_sum_to_one": True,
        "has_zero_row": False,
        **is_matrix,
    }
    assert facts_of(scores.to(dtype))["rows_sum_to_one"] is False
    if is_matrix:
        assert logarithms["rows_are_log_shares"]
        assert not facts_of(scores.to(dtype))["rows_are_log_shares"]


@pytest.mark.parametrize(
    ("tensor", "fact", "holds"),
    [
        (torch.tensor([[0.5, 0.5], [0.0, 0.0]]), "has_zero_row", True),
        (torch.tensor([[0.5, 0.5], [0.0, 0.0]]), "rows_sum_to_one", False),
        (torch.tensor([[0.5, 0.5], [0.0, 1.0]]), "has_zero_row", False),
        (torch.tensor([1.0, float("nan")]), "finite", False),
        (torch.tensor([1.0, float("nan")]), "in_unit_interval", False),
        (torch.tensor([[2.0, -1.0]]), "rows_sum_to_one", False),
        (torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log(), "rows_are_log_shares", True),
        (torch.tensor([[0.5, 0.5], [0.25, 0.7]]).log(), "rows_are_log_shares", False),
        (torch.tensor([[0.0, -torch.inf]]), "rows_are_log_shares", True),
        (torch.tensor([0.0, 1.0]), "in_unit_interval", True),
        (torch.tensor([0.0, 1.1]), "in_unit_interval", False),
    ],
)
def test_facts(tensor, fact, holds):
    assert facts_of(tensor)[fact] is holds


@pytest.mark.parametrize(
    ("tensor", "facts"),
    [
        (torch.tensor([1, 2]), {}),
        (torch.ones(0, 3), {}),
        (torch.tensor(1 + 1j), {}),
        (torch.tensor(2.0), {"finite": True}),
    ],
)
def test_where_little_can_be_said(tensor, facts):
    assert facts_of(tensor) == facts


@given(
    rows=st.lists(
        st.lists(
            st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, math.nan, math.inf]), min_size=2, max_size=2
        ),
        min_size=1,
        max_size=4,
    )
)
def test_facts_are_those_of_each_element(rows):
    """Rows that cancel out are not zero, what is not finite elsewhere hides none."""
    facts = facts_of(torch.tensor(rows))

    elements = [one for row in rows for one in row]
    assert facts["finite"] is all(map(math.isfinite, elements))
    assert facts["in_unit_interval"] is all(0 <= one <= 1 for one in elements)
    assert facts["rows_sum_to_one"] is (
        facts["in_unit_interval"] and all(sum(row) == 1 for row in rows)
    )
    assert facts["has_zero_row"] is any(row[0] == row[1] == 0 for row in rows)


def test_the_call_of_a_tracked_model_tells_its_batch(record):
    """Equal batches have equal digests; what the model calls inside tells the form alone."""
    rows = torch.rand(4, 3)
    with record() as run:
        model = traincheck.track(Net(), name="model")
        for batch in (rows, rows.clone(), rows + 1):
            traincheck.start_step()
            model(batch, options=[torch.ones(2), "as they are"])

    calls = run.calls(f"{__name__}.Net.forward")
    first, second, third = (args_of(call)["rows"] for call in calls)
    assert first["digest"] == second["digest"] != third["digest"]
    assert first["facts"]["in_unit_interval"] is True
    assert third["facts"]["in_unit_interval"] is False
    assert calls[0]["args"]["options"][0]["tensor"]["digest"].startswith("xxh3:")
    assert {call["self"]["object"]["name"] for call in calls} == {"model"}
    (inner, *_) = run.calls("torch.nn.Linear.forward")
    assert "digest" not in args_of(inner)["input"]
    results = [
        one["result"] for one in run.records("call_end") if one["function"].endswith("Net.forward")
    ]
    assert all(one["tensor"]["finite"] for one in results)


def test_a_loss_tells_what_it_judges(record):
    """The function of torch does, not the module around it, and not a large tensor."""
    large = torch.zeros(1, MOST_BYTES // 4 + 1)
    with record() as run:
        nn.MSELoss()(torch.rand(2, 3), torch.zeros(2, 3))
        functional.mse_loss(large, large)
        functional.relu(torch.ones(2))

    small, too_large = run.calls("torch.nn.functional.mse_loss")
    assert args_of(small)["target"]["facts"]["has_zero_row"] is True
    assert "digest" not in args_of(too_large)["input"]
    for other in ("torch.nn.MSELoss.forward", "torch.nn.functional.relu"):
        assert "digest" not in args_of(run.calls(other)[0])["input"]


def test_modules_are_told_by_their_names_while_they_live(record):
    """A layer of a tracked model has a name, another layer has none, nor what gets its id later."""
    with record() as run:
        model = traincheck.track(Net(), name="model")
        traincheck.start_step()
        model.inner(torch.ones(1, 3))
        nn.Linear(3, 2)(torch.ones(1, 3))
        model.inner = nn.Linear(3, 2)
        gc.collect()
        for _ in range(50):
            nn.Linear(3, 2)(torch.ones(1, 3))

    names = [call["self"]["object"].get("name") for call in run.calls("torch.nn.Linear.forward")]
    assert names == ["model.inner"] + [None] * 51


def test_attention_tells_its_dropout(record):
    """It is a builtin, whose arguments have names all the same; afterwards it is itself again."""
    builtin = functional.scaled_dot_product_attention
    with record() as run:
        model = traincheck.track(Attention(), name="model")
        traincheck.start_step()
        model(torch.ones(1, 2, 4))

    (call,) = run.calls("torch.nn.functional.scaled_dot_product_attention")
    assert call["args"]["dropout_p"] == 0.25
    assert functional.scaled_dot_product_attention is builtin


def test_calls_in_a_method_of_the_program_name_its_lines(record):
    """What a model of the program calls stands in a line of its own, not where it was called."""
    with record() as run:
        model = traincheck.track(Net(), name="model")
        traincheck.start_step()
        model(torch.ones(1, 3))

    functions = {one["id"]: one["function"] for one in run.records("source")}
    (outer,) = run.calls(f"{__name__}.Net.forward")
    (inner,) = run.calls("torch.nn.Linear.forward")
    assert functions[outer["src"]].startswith("test_calls_in_a_method")
    assert functions[inner["src"]] == "forward"


def test_the_class_of_a_model_is_left_as_it_was(record):
    forward = vars(Net)["forward"]
    with record():
        traincheck.track(Net(), name="model")
        assert vars(Net)["forward"] is not forward
    assert vars(Net)["forward"] is forward
