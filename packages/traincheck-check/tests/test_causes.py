"""What to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_check.diagnosing.causes import usual_causes
from traincheck_relations.registry import load_relations

if TYPE_CHECKING:
    from traincheck_trace_schema.invariants import Invariant, Params


class Quiet:
    """A relation that says nothing of causes."""


class Telling:
    """One of a plugin that does."""

    def look_at(self, params: Params) -> str:
        return f"the {len(params)} params"


class Failing:
    """One of a plugin that means to."""

    def look_at(self, params: Params) -> str:
        raise ValueError(params)


def test_the_relation_says_it(claims: tuple[Invariant, ...]) -> None:
    """Ours, and those of plugins alike: the checker knows none of them by name."""
    name = claims[0].relation

    assert "frozen" in usual_causes(claims[0], load_relations({name}))
    assert usual_causes(claims[0], {name: Telling()}) == "the 2 params"  # type: ignore[dict-item]


def test_a_relation_need_not_say_it(claims: tuple[Invariant, ...]) -> None:
    """One that is missing, says nothing, or fails costs no more than this."""
    name = claims[0].relation

    for relations in ({}, {name: Quiet()}, {name: Failing()}):
        assert usual_causes(claims[0], relations) == ""  # type: ignore[arg-type]
