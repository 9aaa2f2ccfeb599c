"""Which candidates are worth following: not those about functions that only tell something."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traincheck_trace_schema.invariants import function_of

if TYPE_CHECKING:
    from traincheck_trace_schema.invariants import Params

# A name that begins with such a word is that of a predicate or getter; in whatever order or number
# they are called, training goes on as before.
_ASKS = re.compile(r"_*(is|has|have|get|can|supports?|needs?|should|check|current|validate)(_|$)")
_DUNDER = re.compile(r"__\w+__")
_MEANS_SOMETHING = frozenset(
    ("__init__", "__call__", "__enter__", "__exit__", "__iter__", "__next__")
)


def is_worth_following(params: Params) -> bool:
    """Say whether each function that a candidate names does something.

    >>> from traincheck_trace_schema.invariants import APIParam
    >>> is_worth_following((APIParam(api_full_name="torch.is_grad_enabled"),))
    False
    """
    return not any(_only_tells(function) for param in params if (function := function_of(param)))


def _only_tells(function: str) -> bool:
    name = function.rpartition(".")[2]
    if _DUNDER.fullmatch(name):
        return name not in _MEANS_SOMETHING
    return bool(_ASKS.match(name))
