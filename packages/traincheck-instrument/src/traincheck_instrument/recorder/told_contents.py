"""Tells what tensors hold that a model is given, and that a loss judges.

Of other calls only the form of tensors is told: to read all of them would take longer than training
does. These few show which data comes, and whether it is what belongs there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import attrs
import torch

from traincheck_instrument.content.digest import digest_text, fingerprint, is_readable
from traincheck_instrument.content.facts import facts_of, is_small
from traincheck_instrument.content.place import is_ordinary
from traincheck_instrument.encode.tensors import TensorDescriber
from traincheck_instrument.variables.looking import is_capturing
from traincheck_trace_schema.codec import dumps

Write: TypeAlias = Callable[[Any], str]

MOST_ITEMS = 16  # of a list or tuple of tensors; longer ones are told as those of other calls are

_TENSOR = '{"tensor":{'  # how the text of a tensor begins


@attrs.define(eq=False)
class ContentEncoder:
    """Returns values as JSON text; tensors with digest and facts, as far as they can be read."""

    _write: Write  # without
    _describer: TensorDescriber

    def __call__(self, value: Any) -> str:
        """Return `value` as JSON text."""
        kind = type(value)
        if issubclass(kind, torch.Tensor):
            return self._tensor(value)
        if (kind is tuple or kind is list) and len(value) <= MOST_ITEMS:
            return self._items(value, is_tuple=kind is tuple)
        return self._write(value)

    def _items(self, value: Sequence[Any], *, is_tuple: bool) -> str:
        # Not what is nested deeper: that may be of any size.
        items = [
            self._tensor(one) if issubclass(type(one), torch.Tensor) else self._write(one)
            for one in value
        ]
        text = f"[{','.join(items)}]"
        return f'{{"tuple":{text}}}' if is_tuple else text

    def _tensor(self, value: torch.Tensor) -> str:
        text = self._write(value)
        if not text.startswith(_TENSOR) or is_capturing():
            return text
        local = self._describer.local(value)
        if not (is_ordinary(type(local)) and is_readable(local) and is_small(local)):
            return text
        told = f'{text[:-2]},"digest":"{digest_text(fingerprint(local))}"'
        facts = facts_of(local)
        if facts:
            told += f',"finite":{dumps(facts.pop("finite"))}'
        if facts:
            told += f',"facts":{dumps(facts)}'
        return f"{told}}}}}"
