"""Reads what tensors hold at one moment, fast where they lie as they lay before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import torch
import xxhash
from torch._C import TensorBase

from traincheck_instrument.content.digest import fingerprint, is_readable, zero_and_finite
from traincheck_instrument.content.place import Place, place_of
from traincheck_instrument.content.sparse import fingerprint_of, parts_of
from traincheck_instrument.content.transfer import fetch_fingerprints, fetch_zero_and_finite
from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traincheck_instrument.encode.tensors import TensorDescriber

_data_ptr = TensorBase.data_ptr
_is_contiguous = TensorBase.is_contiguous
_is_negative = TensorBase.is_neg
_storage_of = TensorBase.untyped_storage
_is_near = vars(TensorBase)["is_cpu"].__get__
_version_of: Callable[[torch.Tensor], int] = vars(TensorBase)["_version"].__get__
_digest: Callable[..., int] = xxhash.xxh3_64_intdigest

_NO_VERSION = -1  # of tensors that count none


@attrs.define(eq=False)
class Slot:
    """An attribute of a variable, as it was when last looked at."""

    name: str
    seen: object = None  # what tells its state from another one; None: not looked at
    place: Place | None = None
    # It is not as it was, and may not have been when last looked at: that was a sample.
    is_late: bool = False
    is_sampled: bool = False  # when last looked at
    needs_all: bool = False  # it has changed where the sample had not
    # Of a large tensor, as it was when it was last read whole:
    digest: int = 0
    sample: int | None = None  # None: it was not read here
    version: int = _NO_VERSION
    identity: int = 0

    def leave(self) -> None:
        """Take note that there is nothing, or another tensor."""
        self.sample = None
        self.is_late = self.is_sampled = False


@attrs.frozen
class Deferred:
    """Stands for a digest that comes with those of the other tensors of its device."""

    index: int


class Contents:
    """What tensors hold at one moment: read in place in memory, or fetched by one transfer.

    Measured: 0.8 us and the hashing for a tensor that lies where it lay, 1.5 us for a quick look.
    """

    def __init__(self, describer: TensorDescriber) -> None:
        self._describer = describer
        self._deferred: list[torch.Tensor] = []
        self._fetched: list[int] = []

    def mark(self, tensor: torch.Tensor, slot: Slot, *, is_quick: bool = False) -> object:
        """Return what tells the content from another: a fingerprint, or a text if it has none.

        A quick look believes of a large tensor that it is as it was if version counter and sample
        are. Both may be, and it is not: fused optimizers and writes to `.data` leave the counter.
        """
        place = slot.place
        if (
            place is not None
            and type(tensor) is (form := place.form).kind
            and _data_ptr(tensor) == place.pointer
            # As `Form.is_of` asks, written out: to call it takes as long as two of the questions.
            and tensor.dtype is form.dtype
            and tensor.shape == form.shape
            and _is_contiguous(tensor)
            and not _is_negative(tensor)
            # At last, and each time: to read what was freed ends the process.
            and _storage_of(tensor).nbytes() == place.storage_bytes
        ):
            if place.blocks:
                return self._mark_large(tensor, slot, place, is_quick=is_quick)
            return _digest(place.content, form.seed)
        return self._mark(tensor, slot, is_quick=is_quick)

    def fetch(self) -> None:
        """Fetch the fingerprints that were deferred."""
        if self._deferred:
            self._fetched = fetch_fingerprints(self._deferred)

    def fetched(self, mark: object) -> object:
        """Return a mark, or in place of one that was deferred what was fetched for it."""
        return self._fetched[mark.index] if type(mark) is Deferred else mark

    def zero_and_finite(self, tensor: torch.Tensor, mark: object) -> tuple[bool, bool] | None:
        """Tell of a tensor if all is zero, and if all is finite; None if it can't be read here.

        Best asked right after its mark was: it takes half of the time while the cache has it.
        """
        if type(mark) is not int:
            return None
        part = self._describer.local(tensor)
        return zero_and_finite(part if part.layout is torch.strided else parts_of(part)[-1])

    def fetch_zero_and_finite(self, tensors: Iterable[torch.Tensor]) -> list[tuple[bool, bool]]:
        """Tell the same of tensors whose fingerprints were deferred."""
        return fetch_zero_and_finite(map(self._describer.local, tensors))

    def description(self, tensor: torch.Tensor, slot: Slot) -> str:
        """Return what describes a tensor that was marked: the JSON text of its fields."""
        place = slot.place
        if place is not None and type(tensor) is place.form.kind:
            return place.form.text
        return self._describe(tensor)

    def _mark_large(self, tensor: torch.Tensor, slot: Slot, place: Place, *, is_quick: bool) -> int:
        """Read a tensor where it lies; in a quick look only a sample, if it seems to be as it was.

        The counter moves also if what is written is what was there. So only a sample that differs
        shows that a change is new.
        """
        sample = place.sample()
        try:
            version = _version_of(tensor)
        except RuntimeError:  # one that was made in inference mode
            version = _NO_VERSION
        is_sample_alike = sample == slot.sample and id(tensor) == slot.identity
        if is_quick and is_sample_alike and version == slot.version and not slot.needs_all:
            slot.is_late, slot.is_sampled = False, True
            return slot.digest
        digest = _digest(place.content, place.form.seed)
        if is_sample_alike and digest != slot.digest:
            slot.needs_all = True
            slot.is_late = slot.is_sampled
        else:
            slot.is_late = False
        slot.is_sampled = False
        slot.digest, slot.sample, slot.version = digest, sample, version
        slot.identity = id(tensor)
        return digest

    def _mark(self, tensor: torch.Tensor, slot: Slot, *, is_quick: bool) -> object:
        part = self._describer.local(tensor)
        if part is not tensor:
            return self.mark(part, slot, is_quick=is_quick)
        last, slot.place = slot.place, None
        slot.leave()
        if not is_readable(tensor):
            parts = parts_of(tensor)
            return fingerprint_of(tensor, parts) if parts else str(self._describer(tensor))
        if _is_far(tensor):
            self._deferred.append(tensor)
            return Deferred(len(self._deferred) - 1)
        place = slot.place = place_of(tensor, last, self._describe)
        if place is None:
            return fingerprint(tensor)
        if place.blocks:
            return self._mark_large(tensor, slot, place, is_quick=False)
        return _digest(place.content, place.form.seed)

    def _describe(self, tensor: torch.Tensor) -> str:
        described = self._describer(tensor)
        described.pop("requires_grad", None)
        return dumps(described)[1:-1]


def _is_far(tensor: torch.Tensor) -> bool:
    """Whether the content of a tensor has to be fetched from a device."""
    return not _is_near(tensor)
