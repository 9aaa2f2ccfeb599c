"""Gradients that are sparse, and tensors in the place of parameters that have none to keep."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck
from traincheck_instrument.content.sparse import fingerprint_of, parts_of


@pytest.mark.parametrize("tensor_format", ["hash", "stats", "full"])
def test_changes_of_a_sparse_gradient_are_told(record, tensor_format):
    """By what it keeps, with its digest, and whether that is zero and finite."""
    model = nn.Embedding(10, 3, sparse=True)
    with record(tensor_format=tensor_format) as run:
        traincheck.track(model, name="model")
        traincheck.start_step()
        for factor in (1, 2, float("inf")):
            (model(torch.tensor([1, 2, 1])) * factor).sum().backward()
            assert not model.weight.grad.is_coalesced()
            traincheck.start_step()
        model.zero_grad(set_to_none=False)
        traincheck.start_step()

    told = [one["attributes"]["grad"]["tensor"] for one in run.changes("grad")]
    assert [(one["zero"], one["finite"]) for one in told] == [
        *((False, True), (False, True), (False, False), (True, True))
    ]
    assert len({one["digest"] for one in told}) == 4
    assert "fault" not in {one["reason"] for one in run.records("gap")}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_a_sparse_tensor_is_told_from_another_by_content_and_place(layout):
    """Not only by its values: also by where they stand, and by its shape."""

    def sparse(dense):
        return dense.to_sparse(layout=getattr(torch, layout))

    def mark(dense):
        return fingerprint_of(sparse(dense), parts_of(sparse(dense)))

    one = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    others = [one.flip(0), one * 2, one.double(), torch.nn.functional.pad(one, (0, 1)), one * 0]

    assert mark(one) == mark(one.clone())
    assert len({mark(one), *map(mark, others)}) == 6
    assert parts_of(one) == ()
    assert parts_of(sparse(one).to("meta")) == ()


def test_what_is_no_leaf_is_not_asked_for_its_gradient(record):
    """torch would warn, which may be an error; one that retains its gradient is asked."""
    model, base = nn.Linear(2, 2, bias=False), torch.ones(2, 2, requires_grad=True)
    with record() as run:
        traincheck.track(model, name="model")
        for retains in (False, True):
            model._parameters["weight"] = weight = base * 2
            if retains:
                weight.retain_grad()
            traincheck.start_step()
            model(torch.ones(1, 2)).sum().backward()
        traincheck.start_step()

    assert "fault" not in {one["reason"] for one in run.records("gap")}
    (gradient,) = run.changes("grad")
    assert gradient["step"] == 1
