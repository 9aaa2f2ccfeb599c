"""What is to be recorded of the calls of one function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs

from traincheck_instrument.api.observation import Point
from traincheck_instrument.encode.text import key_text
from traincheck_trace_schema.codec import dumps
from traincheck_trace_schema.values import Scalar

_FUNCTIONAL = "torch.nn.functional."


@attrs.frozen(kw_only=True)
class FunctionSpec:
    """A wrapped function; `arguments` None means all of them.

    `point` says what a call of it does to variables, such as "backward": they are looked at when it
    begins and ends, unless a call that does the same is open.
    """

    name: str
    bases: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, Scalar] = attrs.field(factory=dict)  # of the arguments that are recorded
    is_method: bool = False
    is_optimizer_method: bool = False
    arguments: frozenset[str] | None = None
    wants_result: bool = True
    point: Point | None = None
    is_of_program: bool = False  # a method of a class of its own, whose lines are user code

    @property
    def wants_any_argument(self) -> bool:
        """Whether arguments are recorded at all."""
        return self.arguments is None or bool(self.arguments)

    def wants(self, argument: str) -> bool:
        """Whether an argument is recorded."""
        return self.arguments is None or argument in self.arguments

    @cached_property
    def is_optimizer_step(self) -> bool:
        """Whether it is the step of an optimizer."""
        return self.is_optimizer_method and self.name.endswith(".step")

    @cached_property
    def is_forward(self) -> bool:
        """Whether it is what a module does when it is called."""
        return self.is_method and self.name.endswith(".forward")

    @cached_property
    def is_loss(self) -> bool:
        """Whether it is one of torch's losses: of its functions, they alone say how to reduce."""
        return self.name.startswith(_FUNCTIONAL) and "reduction" in self.parameters

    @cached_property
    def name_text(self) -> str:
        """The name as JSON."""
        return dumps(self.name)

    @cached_property
    def argument_keys(self) -> tuple[str | None, ...]:
        """What `key_of` says of the positional parameters; `self` is told beside the arguments."""
        keys = [self.key_of(name) for name in self.parameters]
        return (None, *keys[1:]) if self.is_method else tuple(keys)

    def key_of(self, argument: str) -> str | None:
        """Return the name of an argument as JSON; None if it is not recorded."""
        return key_text(argument) if self.wants(argument) else None
