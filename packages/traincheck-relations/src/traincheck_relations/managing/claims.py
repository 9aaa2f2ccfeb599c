"""What an invariant claims, apart from when: the key of it, and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_relations.conditions.preconditions import in_words
from traincheck_trace_schema.codec import content_id, unstructure

if TYPE_CHECKING:
    from traincheck_trace_schema.invariants import Invariant


def claim_key(invariant: Invariant) -> str:
    """Return what two invariants share that differ in their preconditions only."""
    return content_id([invariant.relation, [unstructure(param) for param in invariant.params]])


def condition_in_words(invariant: Invariant) -> str:
    """Say when an invariant holds; empty if always."""
    return "; ".join(filter(None, map(in_words, invariant.precondition.values())))


def claim_in_words(invariant: Invariant) -> str:
    """Return the sentence of an invariant without the condition at its end."""
    condition = condition_in_words(invariant)
    sentence = invariant.text_description
    return sentence.removesuffix(f" {condition}") if condition else sentence
