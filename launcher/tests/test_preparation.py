"""What is found out before anything runs."""

from __future__ import annotations

import pytest

from traincheck_launcher.preparing.preparation import names_private
from traincheck_trace_schema.plan import FunctionPlan, Plan


@pytest.mark.parametrize(
    ("function", "is_private"),
    [
        ("torch.nn.Module._apply", True),
        ("torch._foreach_add", True),
        ("torch._dynamo.reset", True),
        ("torch.nn.Linear.__init__", False),
        ("torch.Tensor.add_", False),
        ("__main__.loss", False),
    ],
)
def test_private_functions_are_looked_for_if_invariants_name_them(function, is_private):
    """They were learnt from a full recording; what Python calls by itself is public."""
    plan = Plan(id="p", functions=(FunctionPlan(name=function),), variables=())

    assert names_private(plan) is is_private
    assert not names_private(None)
