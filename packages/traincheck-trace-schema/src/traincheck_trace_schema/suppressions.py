"""Suppressions (document `traincheck.suppressions`): invariants that are not checked, and why."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from traincheck_trace_schema.constraints import Name, Version1

SCHEMA: Final = "traincheck.suppressions"
VERSION: Final = "1.0"


@attrs.frozen(kw_only=True)
class Suppression:
    """Invariants that are not to be checked.

    `pattern` matches an invariant if it matches, as a whole, its id, its relation, a function that
    its params name, or its sentence. `*`, `?` and `[ab]` are those of a shell; case counts.
    """

    schema: Literal["traincheck.suppressions"] = SCHEMA
    version: Version1 = VERSION
    pattern: Name
    reason: Name
