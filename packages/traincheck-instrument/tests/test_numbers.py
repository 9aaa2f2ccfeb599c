"""Numbers of optimizers and schedulers that are none of Python's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import traincheck_instrument as traincheck


class Schedule:
    """A learning rate that only its own code could tell."""


@pytest.mark.parametrize("kind", [np.float64, np.float32, lambda rate: torch.tensor(float(rate))])
def test_a_learning_rate_is_told_whatever_holds_it(record, kind):
    """As the number that it is, when it is set and by a schedule."""
    model = nn.Linear(2, 2)
    with record() as run:
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: kind(2.0**-epoch))
        for _ in range(2):
            traincheck.start_step()
            optimizer.step()
            schedule.step()
        traincheck.start_step()
        optimizer.param_groups[0]["lr"] = kind(8)

    rates = [one["attributes"].get("lr") for one in run.variables("optimizer")]
    assert [one for one in rates if one is not None] == [1.0, 0.5, 0.25, 8.0]
    told = [one["attributes"].get("last_lr") for one in run.variables("scheduler")]
    assert [one for one in told if one is not None] == [[1.0], [0.5], [0.25]]


def test_of_what_is_no_number_the_type_is_told(record):
    """The value that it takes the place of does not stay."""
    model = nn.Linear(2, 2)
    with record() as run:
        traincheck.track(model, name="model")
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        traincheck.start_step()
        optimizer.param_groups[0]["lr"] = Schedule()
        optimizer.param_groups[0]["betas"] = [Schedule()]

    told = run.variables("optimizer")[-1]["attributes"]
    assert told["lr"]["object"]["type"].endswith("Schedule")
    assert told["betas"] == {"object": {"type": "builtins.list"}}
