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
_MOST_KNOWN = 64  # contents whose facts are remembered: a loss is given what the model returned

_TENSOR = '{"tensor":{'  # how the text of a tensor begins


@attrs.define(eq=False)
class ContentEncoder:
    """Returns values as JSON text; tensors with digest and facts, as far as they can be read."""

    _write: Write  # without
    _describer: TensorDescriber
    _known: dict[int, str] = attrs.field(factory=dict)  # by fingerprint, what is told of contents

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
        return f"{text[:-2]}{self._content(local)}}}}}"

    def _content(self, tensor: torch.Tensor) -> str:
        """Return the digest and the facts of a readable tensor, as JSON text."""
        mark = fingerprint(tensor)
        told = self._known.get(mark)
        if told is None:
            told = f',"digest":"{digest_text(mark)}"'
            facts = facts_of(tensor)
            if facts:
                told += f',"finite":{dumps(facts.pop("finite"))}'
            if facts:
                told += f',"facts":{dumps(facts)}'
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[mark] = told
        return told
