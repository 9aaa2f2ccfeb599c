"""What each relation of TrainCheck means, for inference and checking alike."""

from traincheck_relations.__about__ import __version__
from traincheck_relations.api import (
    Call,
    Event,
    EventMonitor,
    Example,
    Gap,
    Interests,
    Monitor,
    Position,
    Proposer,
    RecordRef,
    Relation,
    Requirements,
    VariableState,
)
from traincheck_relations.per_call import PerCallRelation

__all__ = [
    "Call",
    "Event",
    "EventMonitor",
    "Example",
    "Gap",
    "Interests",
    "Monitor",
    "PerCallRelation",
    "Position",
    "Proposer",
    "RecordRef",
    "Relation",
    "Requirements",
    "VariableState",
    "__version__",
]
