"""What a relation is: the interfaces that a plugin implements, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import attrs

from traincheck_trace_schema.values import Json, Scalar
from traincheck_trace_schema.window import Window

if TYPE_CHECKING:
    from traincheck_trace_schema.invariants import Params

RawRecord: TypeAlias = Mapping[str, Any]  # as the JSON of a trace is: checked when structured
Context: TypeAlias = Mapping[str, Scalar]


@attrs.frozen
class RecordRef:
    """A record, and where it stands."""

    shard: str
    rank: int
    record: RawRecord


@attrs.frozen(kw_only=True)
class Position:
    """Where in a run an occasion lies; of a comparison of ranks, `rank` is the one that differs."""

    rank: int
    window: Window
    stage: str
    function: str | None = None
    variable: str | None = None
    source: str | None = None  # "file:line"


@attrs.define(eq=False)
class Callee:
    """A function that is called, as the trace tells of it."""

    name: str
    documented: tuple[str, ...]  # the function, then the public base methods that it overrides
    names: frozenset[str]  # those, and its aliases
    defaults: Mapping[str, Json]  # of arguments that are left out


@attrs.define(eq=False)
class Call:
    """A recorded call, from its begin to its end; not to be changed."""

    callee: Callee
    parent: Call | None
    begin: RawRecord

    @property
    def id(self) -> int:
        """Its id, in its process."""
        id_: int = self.begin["id"]
        return id_

    @property
    def function(self) -> str:
        """The function's name."""
        return self.callee.name

    @property
    def documented(self) -> tuple[str, ...]:
        """The function, then the public base methods that it overrides."""
        return self.callee.documented

    @property
    def names(self) -> frozenset[str]:
        """Those, and the function's aliases."""
        return self.callee.names

    @property
    def defaults(self) -> Mapping[str, Json]:
        """The values of arguments that are left out, where they are told."""
        return self.callee.defaults

    def around(self) -> Iterator[Call]:
        """Yield the calls that this one was made in, the innermost first."""
        call = self.parent
        while call is not None:
            yield call
            call = call.parent

    def is_within(self, other: Call) -> bool:
        """Whether this call is `other` or was made inside it, at any depth."""
        return self is other or any(one is other for one in self.around())


@attrs.define(eq=False)
class VariableState:
    """A tracked variable as it was last seen; not to be changed."""

    # Not frozen: there is one for each change, and making a frozen one takes twice the time.
    id: int
    names: tuple[str, ...]
    role: str
    type: str
    storage: int
    holders: frozenset[str]  # names of the optimizers that hold it
    groups: tuple[str, ...]  # names of their parameter groups, as "optimizer0.group1"
    attributes: Mapping[str, Json]
    told: RawRecord  # the record that last said anything but attributes


@attrs.define(eq=False)
class Event:
    """A record of the stream, with what the records before it say about it; not to be changed.

    What it tells of its process, as the rank, is what is known of that by now.
    `call`: of a call record, the call itself; of another record, the call it names.
    `before`, `after`: of a `var` record, the variable's state (None: it was not there).
    """

    # Not frozen: there is one for each record, and making a frozen one takes twice the time.
    kind: str
    record: RawRecord
    run: RunState
    window: Window
    stage: str
    call: Call | None = None
    before: VariableState | None = None
    after: VariableState | None = None

    @property
    def shard(self) -> str:
        """The name of the shard that it stands in."""
        return self.run.shard

    @property
    def rank(self) -> int:
        """The rank of its process."""
        return self.run.rank

    @property
    def process(self) -> int:
        """The ordinal of its shard in the run."""
        return self.run.process

    @property
    def restart(self) -> int:
        """How often the job was restarted before its process."""
        return self.run.restart

    @property
    def is_main(self) -> bool:
        """Whether its process is one that trains, and not one that such a process forked."""
        return self.run.is_main

    @property
    def is_late(self) -> bool:
        """Whether the end of its window was told: ranks can't be compared there any more."""
        return self.run.is_over(self.window)

    def ref(self) -> RecordRef:
        """Refer to the record, as evidence."""
        return RecordRef(self.shard, self.rank, self.record)


class RunState(Protocol):
    """What is known of a process at a moment of the stream."""

    @property
    def shard(self) -> str:
        """The name of its shard."""

    @property
    def process(self) -> int:
        """The ordinal of its shard in the run."""

    @property
    def rank(self) -> int:
        """Its rank, by the last header."""

    @property
    def restart(self) -> int:
        """How often the job was restarted before it."""

    @property
    def is_main(self) -> bool:
        """Whether it is one that trains."""

    @property
    def layout(self) -> int:
        """A number that is another one whenever what `variables` says of more than content is.

        That is which variables there are, their names, holders and flags: what is derived of these
        alone need not be derived again while it is the same.
        """

    def variables(self) -> Mapping[int, VariableState]:
        """Return the live variables of the event's process, by id."""

    def is_over(self, window: Window) -> bool:
        """Whether the end of a window was told."""

    def source(self, id_: int | None) -> str | None:
        """Return "file:line" of a source record of the process."""

    def world(self) -> Mapping[str, tuple[int, ...]]:
        """Return the named groups of ranks, `world` among them."""

    def model(self) -> str | None:
        """Return what tells one model from another: a digest of the names of all parameters.

        None if none are told. Claims that name a part of a model are made of that model alone.
        """


@attrs.frozen(kw_only=True)
class Gap:
    """Records that are missing at this point of a process."""

    reason: str
    rank: int
    process: int
    window: Window


@attrs.frozen(kw_only=True)
class Example:
    """An occasion on which a relation could hold: did it, in which context, and the evidence.

    `context` holds facts known when the occasion began, never results. `happened` says in words
    what was seen where the relation did not hold.

    `context`, `at` and `evidence` may be functions that give them: most examples hold, and of few
    of these anybody asks. They are called while the example is handled, or never.
    """

    param: int
    held: bool
    _context: Context | Callable[[], Context] = attrs.field(eq=False)
    _at: Position | Callable[[], Position] = attrs.field(eq=False)
    _evidence: tuple[RecordRef, ...] | Callable[[], tuple[RecordRef, ...]] = attrs.field(
        default=(), eq=False
    )
    happened: str = ""

    @property
    def context(self) -> Context:
        """The facts that were known when the occasion began."""
        return self._context() if callable(self._context) else self._context

    @property
    def at(self) -> Position:
        """Where in the run the occasion lies."""
        return self._at() if callable(self._at) else self._at

    @property
    def evidence(self) -> tuple[RecordRef, ...]:
        """The records that show it, also where the relation held; none if they can't be given."""
        if not callable(self._evidence):
            return self._evidence
        try:
            return tuple(self._evidence())
        except Exception:  # noqa: BLE001  of a plugin: what it judged is not lost for want of proof
            return ()


@attrs.frozen(kw_only=True)
class Interests:
    """Which events a monitor or proposer wants.

    `functions`: of records that are about a call, an observation at its begin or end included,
    those of calls of these functions; empty means of any. Other records are not asked for it.
    """

    kinds: frozenset[str]
    functions: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Requirements:
    """What must be recorded so that something can be evaluated."""

    functions: Mapping[str, frozenset[str]] = attrs.field(factory=dict)  # name: arguments
    results: frozenset[str] = frozenset()  # functions whose results are needed
    variables: Mapping[str, frozenset[str]] = attrs.field(factory=dict)  # role: attributes
    observe: frozenset[str] = frozenset()  # functions around which variables are looked at
    # Functions at whose begin, or end, alone: what changes in between is not asked for.
    observe_before: frozenset[str] = frozenset()
    observe_after: frozenset[str] = frozenset()
    contexts: frozenset[str] = frozenset()


class Proposer(Protocol):
    """Looks at a run once and proposes what may hold in it."""

    interests: Interests

    def on_event(self, event: Event) -> None:
        """Take the next event."""

    def finish(self) -> Iterable[Params]:
        """Return the candidates, each once, in a fixed order."""


class Monitor(Protocol):
    """Follows a run and yields an example at each occasion of one of its params."""

    interests: Interests

    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""

    def on_window_end(self, window: Window) -> Iterable[Example]:
        """Every rank has left this window."""

    def on_gap(self, gap: Gap) -> None:
        """Forget what reaches across the gap."""

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        """The run is over."""


class EventMonitor(ABC):
    """A monitor that judges at events alone; a gap, and the ends of windows, are nothing to it."""

    interests: Interests

    @abstractmethod
    def on_event(self, event: Event) -> Iterable[Example]:
        """Take the next event."""

    def on_window_end(self, window: Window) -> Iterable[Example]:
        """Every rank has left this window."""
        del window
        return ()

    def on_gap(self, gap: Gap) -> None:  # noqa: B027  it may be of concern, and need not be
        """Forget what reaches across the gap."""

    def on_end(self, *, complete: bool) -> Iterable[Example]:
        """The run is over."""
        del complete
        return ()


class Relation(Protocol):
    """A kind of claim about training runs. Instances are stateless and cheap to make.

    One that has `looks_at_arguments = True` honours the `arguments` and the `exception` of an
    `APIParam`; others are not asked about params that have them.

    Three more methods are optional:

    - `without_implied(invariants: Sequence[Invariant]) -> Sequence[Invariant]` drops those of its
      own invariants that its others imply, as an order that follows from two others;
    - `likelihood(params: Params) -> float` says from 0 to 1 how likely it is that a breach is a bug
      (0.5 where it is missing); invariants are sorted by it;
    - `look_at(params: Params) -> str` says what a person should look at first where the claim is
      broken: the usual causes, the likeliest first, as what follows "Look at".
    """

    name: ClassVar[str]
    group: ClassVar[str]  # the name of its precondition's group in the invariant file

    def proposer(self) -> Proposer:
        """Make a proposer for one run."""

    def requires(self, params: Params) -> Requirements:
        """Say what must be recorded to evaluate `params`."""

    def monitor(self, params: Sequence[Params]) -> Monitor:
        """Make one monitor for all of `params`; examples name them by index."""

    def describe(self, params: Params) -> str:
        """Say in one sentence what `params` claim."""
