"""What a backward leaves without a gradient, and whether that says something.

Parts of a model are used in turns: the head of each task, the experts that a batch needs, the
layers that are not dropped. So a variable that had a gradient once says nothing where it gets none;
one that never had any is told as soon as that is no chance any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traincheck_relations.api import Example, VariableState
    from traincheck_trace_schema.invariants import VarTypeParam

_PATIENCE = 5  # backwards in a row; one layer of a hundred is dropped so often if 40 % are


def gives_gradient(child: VarTypeParam) -> bool:
    """Whether a claim is that a gradient appears."""
    return child.attr_name == "grad" and child.pre_value == "none" and child.post_value != "none"


class GradientTurns:
    """Keeps examples back until it is known that it is not another's turn."""

    def __init__(self) -> None:
        # By process, variable and claim: what one claim is told depends on no other claim.
        self._had: set[tuple[int, int, int]] = set()  # had a gradient
        self._kept_back: dict[tuple[int, int, int], list[Example]] = {}

    def take(self, process: int, variable: VariableState, example: Example) -> Iterator[Example]:
        """Take what came of a claim for a variable; yield what can be said now."""
        key = process, variable.id, example.param
        if example.held:
            self._had.add(key)
            self._kept_back.pop(key, None)
            yield example
        elif key not in self._had and variable.holders:
            kept_back = self._kept_back.setdefault(key, [])
            if len(kept_back) < _PATIENCE:
                kept_back.append(example)
                yield from kept_back if len(kept_back) == _PATIENCE else ()
            else:
                yield example
