"""Which thread looks at the variables."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck


def in_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    return thread


def train(model, steps=2):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        traincheck.start_step()
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


@pytest.fixture
def model():
    return nn.Linear(2, 2)


def test_the_thread_that_trains_looks_whoever_looked_before(record, model):
    """The main thread, which loaded the weights, does not train: it may go on loading."""
    with record() as run:
        traincheck.track(model, name="model")
        model.load_state_dict(model.state_dict())

        def train_beside():
            train(model)
            model.load_state_dict(model.state_dict())

        in_thread(train_beside)
        model.load_state_dict(model.state_dict())

    assert "fault" not in {one["reason"] for one in run.records("gap")}
    assert {one["step"] for one in run.changes("data")} == {0, 1}
    assert max(one["step"] for one in run.records("observe") if one["phase"] == "step_end") == 1


def test_threads_that_train_one_after_the_other_are_looked_at(record, model):
    """What one of them has trained is not read while the next does."""
    with record() as run:
        traincheck.track(model, name="model")
        ended = [in_thread(lambda: train(model)) for _ in range(3)]

    assert len(ended) == 3
    assert "fault" not in {one["reason"] for one in run.records("gap")}
    assert {one["step"] for one in run.changes("data")} == set(range(6))


def test_while_a_graph_is_captured_nobody_looks(record, model, monkeypatch):
    """To copy from the device would spoil the capture. Afterwards the changes are told."""
    with record() as run:
        traincheck.track(model, name="model")
        with monkeypatch.context() as capture:
            capture.setattr(torch.cuda, "is_initialized", lambda: True)
            capture.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            train(model, steps=1)
            captured = len(run.recorder._observer._last_look)
        traincheck.start_step()

    assert captured == 0
    assert {one["step"] for one in run.changes("data")} == {0}
    (look,) = {one["phase"] for one in run.records("observe") if one["step"] == 0}
    assert look == "step_end"
