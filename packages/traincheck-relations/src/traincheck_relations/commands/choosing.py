"""The options that choose invariants, which `list` and `filter` share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from traincheck_trace_schema.cli import ManyValues
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

    from traincheck_relations.managing.choice import Choice

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--relation",
        cls=ManyValues,
        metavar="PATTERN",
        help="Only those of this relation, as ConsistencyRelation or 'API*'.",
    ),
    click.option(
        "--function",
        cls=ManyValues,
        metavar="PATTERN",
        help="Only those about this function, as torch.optim.Optimizer.step or '*.step'.",
    ),
    click.option(
        "--id",
        "ids",
        cls=ManyValues,
        metavar="ID",
        help="Only the one with this id, or whose id begins so.",
    ),
    click.option(
        "--grep",
        metavar="REGEX",
        help="Only those whose sentence has this regular expression; case does not count.",
    ),
    click.option(
        "--min-likelihood",
        type=click.FloatRange(0, 1),
        metavar="X",
        help="Only those whose breach is a bug with at least this likelihood.",
    ),
    click.option(
        "--min-positive",
        type=click.IntRange(min=0),
        metavar="N",
        help="Only those that held on at least N occasions.",
    ),
    click.option("--invert", "is_inverted", is_flag=True, help="Choose all others instead."),
)


@attrs.frozen(kw_only=True)
class Chosen:
    """What the options say, as they were given."""

    relation: tuple[str, ...]
    function: tuple[str, ...]
    ids: tuple[str, ...]
    grep: str | None
    min_likelihood: float | None
    min_positive: int | None
    is_inverted: bool

    def choice(self, ids: Collection[str], *, where: str) -> Choice:
        """Return the choice among invariants that have these ids.

        Raises:
            ConfigError: An id is not there or not the only one that begins so, or the regular
                expression is none.
        """
        from traincheck_relations.managing.choice import Choice  # noqa: PLC0415  --help needs none
        from traincheck_relations.managing.ids import by_prefix  # noqa: PLC0415

        return Choice(
            relations=self.relation,
            functions=self.function,
            ids=frozenset(by_prefix(each, ids, where=where) for each in self.ids),
            words=None if self.grep is None else _compiled(self.grep),
            min_likelihood=self.min_likelihood,
            min_positive=self.min_positive,
            is_inverted=self.is_inverted,
        )


def choosing_options(function: _Function) -> _Function:
    """Add the options that are the fields of `Chosen`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"--grep: {expression!r} is no regular expression: {error}") from error
