"""What comparing two runs gives: the document of `traincheck diff --format json`."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

SCHEMA: Final = "traincheck.comparison"
VERSION: Final = "1.0"

Kind: TypeAlias = Literal[
    "steps", "calls", "arguments", "results", "gradients", "parameters", "buffers", "settings"
]
KINDS: Final[tuple[Kind, ...]] = (
    *("steps", "calls", "arguments", "results"),
    *("gradients", "parameters", "buffers", "settings"),
)
Verdict: TypeAlias = Literal["same", "differ", "not compared"]


@attrs.frozen(kw_only=True)
class Divergence:
    """The first difference of a kind on a rank.

    `what` says it in a sentence; `in_a` and `in_b` are the two values, or calls. `within` are the
    calls around it, the outermost first. Of variables, `names` are those that part there, at most
    `MAX_NAMES`, `count` is how many, and `of` how many variables of the role both runs have.
    """

    kind: Kind
    rank: int
    step: int  # -1: before the first
    eval_pass: int = 0
    eval_step: int | None = None
    what: str
    likely: str = ""  # what this usually comes from, and where to look
    in_a: str = ""
    in_b: str = ""
    size: str = ""  # how large the difference is, if the traces tell
    function: str | None = None
    within: tuple[str, ...] = ()
    source_a: str | None = None  # "file:line"
    source_b: str | None = None
    names: tuple[str, ...] = ()
    count: int = 0
    of: int = 0
    steps: int = 0  # that differ in this kind, of those compared on this rank
    last_step: int = -1  # the last of these


MAX_NAMES: Final = 100


@attrs.frozen(kw_only=True)
class Spread:
    """How many variables differed, and calls, in steps that follow one another and are alike."""

    first_step: int
    last_step: int
    steps: int  # of these that both runs recorded
    parameters: int = 0
    gradients: int = 0
    buffers: int = 0
    calls: int = 0
    values: int = 0  # arguments and results


@attrs.frozen(kw_only=True)
class RankComparison:
    """What was found on a rank: the first divergence of each kind in order, and how it spread."""

    rank: int
    steps: int  # training steps that both recorded and that were compared
    calls: int  # that correspond
    values: int  # arguments and results that both recorded
    variables: int
    divergences: tuple[Divergence, ...] = ()
    spread: tuple[Spread, ...] = ()


@attrs.frozen(kw_only=True)
class Side:
    """One of the two runs."""

    path: str
    run_id: str
    ranks: tuple[int, ...]
    first_step: int | None = None
    last_step: int | None = None
    incomplete_because: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Comparison:
    """Two runs, held against each other. The first divergence is the likely cause."""

    schema: str = SCHEMA
    version: str = VERSION
    verdict: Verdict
    summary: str  # one line
    a: Side
    b: Side
    kinds: tuple[Kind, ...] = KINDS  # that were asked for
    steps: int = 0  # training steps that were compared on every rank
    divergences: tuple[Divergence, ...] = ()  # the first of each kind, in order
    ranks: tuple[RankComparison, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be compared, and why

    @property
    def is_complete(self) -> bool:
        """Whether both traces are all that happened, as far as they were read."""
        return not (self.a.incomplete_because or self.b.incomplete_because)
