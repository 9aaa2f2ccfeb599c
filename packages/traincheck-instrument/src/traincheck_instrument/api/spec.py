"""What is to be recorded of the calls of one function."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class FunctionSpec:
    """A wrapped function; `arguments` None means all of them.

    `observe_as` names what a call of it does to variables, such as "backward": they are looked at
    when it begins and ends, unless a call that does the same is open.
    """

    name: str
    bases: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    is_method: bool = False
    is_optimizer_method: bool = False
    arguments: frozenset[str] | None = None
    wants_result: bool = True
    observe_as: str | None = None
    observe_attributes: tuple[str, ...] = ()

    @property
    def wants_any_argument(self) -> bool:
        """Whether arguments are recorded at all."""
        return self.arguments is None or bool(self.arguments)

    def wants(self, argument: str) -> bool:
        """Whether an argument is recorded."""
        return self.arguments is None or argument in self.arguments
