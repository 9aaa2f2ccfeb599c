"""The command `traincheck invariants suppress`."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from traincheck_relations.commands.files import ENDLESS, INVARIANT_FILE, read
from traincheck_trace_schema.cli import TraincheckCommand, say, warn
from traincheck_trace_schema.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traincheck_trace_schema.invariants import Invariant
    from traincheck_trace_schema.suppressions import Suppression

_SHOWN: Final = 5  # invariants that a pattern matches


@click.command("suppress", cls=TraincheckCommand)
@click.argument("file", type=INVARIANT_FILE)
@click.argument("given", nargs=-1, metavar="[ID_OR_PATTERN]...")
@click.option("--reason", metavar="TEXT", help="Why they are not to be checked.")
@click.option("--list", "is_list", is_flag=True, help="Show what is suppressed, and why.")
@click.option("--remove", "is_remove", is_flag=True, help="Have them checked again.")
def suppress(
    file: Path, given: tuple[str, ...], *, reason: str | None, is_list: bool, is_remove: bool
) -> None:
    """Say of invariants that they are not to be checked, and why.

    ID_OR_PATTERN is an id, the beginning of one, or a pattern. A pattern matches an invariant if it
    matches its id, its relation, a function that it is about or its sentence, as a whole: * stands
    for any characters, ? for one, [ab] for one of them; case counts. Quote it, or the shell takes
    it.

    What is suppressed is kept beside FILE: for invariants.json in invariants.suppressed.jsonl.
    traincheck-check does not evaluate it, and tells how much was suppressed and why.

    \b
    Examples:
      traincheck invariants suppress invariants.json 30343684 --reason "head is frozen"
      traincheck invariants suppress invariants.json 'torch.cuda.*' --reason "ticket 12"
      traincheck invariants suppress invariants.json --list
      traincheck invariants suppress invariants.json 'torch.cuda.*' --remove
    """  # noqa: D301  click's mark for a paragraph that is not wrapped
    from traincheck_relations.suppression import suppressions_beside  # noqa: PLC0415  --help

    _insist_on_one_thing(given, reason=reason, is_list=is_list, is_remove=is_remove)
    invariants = read(file)
    suppressions = suppressions_beside([file])
    if is_list:
        _list(file, invariants, suppressions)
    elif is_remove:
        _remove(file, given, suppressions)
    else:
        _add(file, given, (reason or "").strip(), invariants, suppressions)


def _insist_on_one_thing(
    given: Sequence[str], *, reason: str | None, is_list: bool, is_remove: bool
) -> None:
    if is_list and (given or is_remove or reason is not None):
        raise ConfigError("--list takes nothing else than FILE")
    if not is_list and not given:
        raise ConfigError("No id or pattern is given; --list shows what is suppressed")
    if is_remove and reason is not None:
        raise ConfigError("--remove takes no --reason")
    if not is_list and not is_remove and not (reason or "").strip():
        raise ConfigError("A suppression needs a reason; give one with --reason TEXT")


def _list(file: Path, invariants: Sequence[Invariant], suppressions: Sequence[Suppression]) -> None:
    from traincheck_relations.suppression import Suppressions  # noqa: PLC0415  see `suppress`
    from traincheck_trace_schema.commands.table import (  # noqa: PLC0415
        table,
        terminal_width,
        wrapped_table,
    )

    if not suppressions:
        say(f"{file}: nothing is suppressed")
        return
    heads = ("invariants", "pattern", "reason")
    known = Suppressions.of(suppressions)
    counts = Counter(at for each in invariants for at in known.matching(each))
    rows = [(counts[at], each.pattern, each.reason) for at, each in enumerate(suppressions)]
    is_terminal = sys.stdout.isatty()
    lay_out = wrapped_table if is_terminal else table
    for line in lay_out(heads, rows, width=terminal_width() if is_terminal else ENDLESS):
        say(line)


def _add(
    file: Path,
    given: Sequence[str],
    reason: str,
    invariants: Sequence[Invariant],
    suppressions: Sequence[Suppression],
) -> None:
    from traincheck_relations.managing.suppressing import added, pattern_for  # noqa: PLC0415
    from traincheck_relations.suppression import Suppressions, is_matched  # noqa: PLC0415
    from traincheck_trace_schema.suppression_file import (  # noqa: PLC0415  see `suppress`
        suppression_path,
        write_suppressions,
    )

    patterns = [pattern_for(each, invariants, where=str(file)) for each in given]
    now = added(suppressions, patterns, reason)
    path = suppression_path(file)
    write_suppressions(path, now)
    for pattern in patterns:
        matched = [each for each in invariants if is_matched(each, pattern)]
        say(f"suppressed by {pattern!r}: {len(matched)} of {len(invariants)} invariants")
        for each in matched[:_SHOWN]:
            say(f"  {each.text_description}")
        if len(matched) > _SHOWN:
            say(f"  and {len(matched) - _SHOWN} more")
    say(f"kept in {path}")
    if len(Suppressions.of(now).by_id(invariants)) == len(invariants):
        warn("every invariant is suppressed, so that nothing is left to check")


def _remove(file: Path, given: Sequence[str], suppressions: Sequence[Suppression]) -> None:
    from traincheck_relations.managing.suppressing import removed  # noqa: PLC0415  see `suppress`
    from traincheck_trace_schema.suppression_file import (  # noqa: PLC0415
        suppression_path,
        write_suppressions,
    )

    path = suppression_path(file)
    left, gone = removed(suppressions, given, where=str(path))
    if left:
        write_suppressions(path, left)
    else:
        path.unlink()
    for pattern in gone:
        say(f"no longer suppressed by {pattern!r}")
    say(f"{path}: {len(left)} left" if left else f"{path}: removed, nothing is suppressed")
