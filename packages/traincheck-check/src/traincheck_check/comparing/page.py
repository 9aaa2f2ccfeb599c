"""Puts a comparison into a page of its own: one file that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import jinja2

from traincheck_check.__about__ import __version__
from traincheck_check.comparing import words
from traincheck_check.reporting.html.wording import clipped, finalized

if TYPE_CHECKING:
    from traincheck_check.comparing.result import Comparison

_TONES: Final = {"same": "good", "differ": "bad", "not compared": "odd"}
_MOST_ROWS: Final = 200  # of how it spread, of a rank
_MOST_RANKS: Final = 64


def page(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("traincheck_check.comparing"),
                jinja2.PackageLoader("traincheck_check.reporting.html"),  # the style
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cell=clipped)
    is_whole = comparison.is_complete or comparison.verdict != "same"
    return environment.get_template("comparison.html").render(
        comparison=comparison,
        tone=_TONES[comparison.verdict] if is_whole else "odd",
        words=words,
        ranks=comparison.ranks[:_MOST_RANKS],
        most_rows=_MOST_ROWS,
        version=__version__,
    )
