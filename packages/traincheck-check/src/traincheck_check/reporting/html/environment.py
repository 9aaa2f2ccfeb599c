"""Where templates are found, and what they may use: of the report, and of pages like it."""

from __future__ import annotations

from functools import cache

import jinja2

from traincheck_check.reporting.html.wording import clipped, finalized


@cache
def environment(*packages: str) -> jinja2.Environment:
    """Return what renders the templates in packages; those of the report stand behind them.

    All that is put into a page is escaped, and made visible.
    """
    loaders = [
        jinja2.PackageLoader(name) for name in (*packages, "traincheck_check.reporting.html")
    ]
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(cell=clipped, count="{:,}".format)
    return made
