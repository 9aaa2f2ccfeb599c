"""The formats `stats` and `full`: what they tell beside the digest."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

import traincheck_instrument as traincheck
from traincheck_instrument.content.statistics import MOST_ELEMENTS, described_content
from traincheck_trace_schema.codec import structure_value
from traincheck_trace_schema.reading import open_run


def read(described):
    """Read back what is told of a tensor, as readers do."""
    value = {"tensor": {"shape": [1], "dtype": "float32", "device": "cpu", **described}}
    return structure_value(value)


def test_statistics_are_those_of_all_elements():
    """In double precision, whatever order they have in memory."""
    numbers = torch.tensor([[0.0, -3.0], [1.0, 4.0]])

    for tensor in (numbers, numbers.t(), numbers.half(), numbers.int()):
        told = described_content(tensor, "stats")["statistics"]

        assert (told["min"], told["max"], told["mean"]) == (-3.0, 4.0, 0.5)
        assert told["std"] == pytest.approx(math.sqrt(6.25))
        assert told["norm"] == pytest.approx(math.sqrt(26))
        assert (told["zeros"], told["nan"], told["inf"]) == (1, 0, 0)


def test_statistics_of_many_elements_are_put_together():
    """From chunks: large tensors are never converted as a whole."""
    torch.manual_seed(0)
    numbers = torch.randn(2**21 + 7) + 1000

    told = described_content(numbers, "stats")["statistics"]

    exact = numbers.double()
    assert told["mean"] == pytest.approx(exact.mean().item(), rel=1e-12)
    assert told["std"] == pytest.approx(exact.std(correction=0).item(), rel=1e-9)
    assert told["norm"] == pytest.approx(exact.norm().item(), rel=1e-12)
    assert (told["min"], told["max"]) == (exact.min().item(), exact.max().item())


def test_what_is_not_finite_is_counted():
    """NaN makes what is computed NaN; infinities are the least and the largest."""
    told = described_content(torch.tensor([math.nan, math.inf, 1.0, 0.0]), "stats")["statistics"]
    infinite = described_content(torch.tensor([-math.inf, math.inf]), "stats")["statistics"]

    assert (told["nan"], told["inf"], told["zeros"]) == (1, 1, 1)
    assert told["min"] == told["max"] == told["mean"] == {"float": "nan"}
    assert (infinite["min"], infinite["max"]) == ({"float": "-inf"}, {"float": "inf"})


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([[1.5, -0.0], [math.inf, 1e-45]]).t(),
        torch.tensor([True, False]),
        torch.tensor([2**63 - 1, -1]),
        torch.tensor(2**64 - 1, dtype=torch.uint64),
        torch.tensor([1.5, -2.0]).bfloat16(),
        torch.tensor([1.5, -2.0]).to(torch.float8_e5m2),
        torch.ones(0, 3).double(),
    ],
    ids=lambda tensor: str(tensor.dtype),
)
def test_full_tells_each_element_in_logical_order(tensor):
    """Exactly, and so that a reader reads them back."""
    told = read(described_content(tensor, "full")).data

    back = torch.tensor([structure_value(one) for one in told], dtype=tensor.dtype)
    assert torch.equal(back.reshape(tensor.shape).double(), tensor.double())


def test_complex_numbers_are_told_by_their_parts():
    """As a complex argument is; statistics are of the magnitude."""
    tensor = torch.tensor([3 + 4j]).conj()

    (told,) = described_content(tensor, "full")["data"]
    assert told["object"]["attributes"] == {"real": 3.0, "imag": -4.0}
    assert described_content(tensor, "stats")["statistics"]["max"] == 5.0


def test_of_a_tensor_with_too_many_elements_full_tells_statistics():
    """A line has a limit; that `data` is missing and `statistics` are there says so."""
    assert "data" in described_content(torch.zeros(MOST_ELEMENTS), "full")
    told = described_content(torch.zeros(MOST_ELEMENTS + 1), "full")

    assert set(told) == {"statistics"}
    assert told["statistics"]["zeros"] == MOST_ELEMENTS + 1


def test_of_mere_bits_there_is_only_the_digest():
    """What torch can't convert to numbers has no statistics, and no fault."""
    bits = torch.zeros(4, dtype=torch.uint8).view(torch.bits8)

    assert described_content(bits, "stats") == {}
    assert described_content(bits, "full") == {}


@pytest.mark.parametrize("tensor_format", ["stats", "full"])
def test_a_trace_has_the_same_changes_in_every_format(record, tensor_format):
    """Content is told of parameters, gradients and buffers, beside the digest that decides."""
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tensor_format=tensor_format) as run:
        traincheck.track(model, name="model")
        for _ in range(2):
            traincheck.start_step()
            optimizer.zero_grad()
            functional.mse_loss(model(torch.randn(4, 3)), torch.ones(4, 2)).backward()
            optimizer.step()
        traincheck.start_step()

    assert run.records("header")[0]["tensor_format"] == tensor_format
    field = {"stats": "statistics", "full": "data"}[tensor_format]
    tensors = [
        value["tensor"]
        for one in run.records("var")
        for value in one["attributes"].values()
        if isinstance(value, dict) and "tensor" in value
    ]
    assert all(one["digest"] and one[field] for one in tensors)
    changed = [one["step"] for one in run.changes("data") if one["names"] == ["model.1.bias"]]
    assert changed == [0, 1]
    (argument, *_) = run.calls("torch.nn.Linear.forward")
    assert set(argument["args"]["input"]["tensor"]) == {"shape", "dtype", "device"}
    assert sum(1 for _ in open_run([run.folder]).stream()) > 0
