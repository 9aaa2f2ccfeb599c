"""The variables whose state is the content of tensors: parameters, and buffers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import torch
from torch._C import TensorBase

from traincheck_instrument.content.contents import Contents, Slot
from traincheck_instrument.content.digest import digest_text, is_readable
from traincheck_instrument.content.facts import all_equal
from traincheck_instrument.content.place import is_ordinary
from traincheck_instrument.content.statistics import described_content
from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.variables.variable import Change, Holders, Json, Variable
from traincheck_trace_schema.codec import dumps

if TYPE_CHECKING:
    from traincheck_instrument.encode import Encoder
    from traincheck_instrument.settings import TensorFormat
    from traincheck_instrument.variables.module_tree import Named

_PRIMITIVE = (bool, int, str)
_FLAG = "requires_grad"  # the attribute that is no tensor
_NOTHING = frozenset[str]()
_NONE = "none"  # the mark of a gradient that is not there
_SAID = {None: "null", True: "true", False: "false"}

_grad = vars(TensorBase)["grad"].__get__  # warns of a tensor that has none to keep
_is_leaf = vars(TensorBase)["is_leaf"].__get__
_retains_grad = vars(TensorBase)["retains_grad"].__get__
# A subclass may define properties of these names.
_READERS: Mapping[str, Callable[[torch.Tensor], Any]] = {
    "data": lambda tensor: tensor,
    "grad": lambda tensor: _grad(tensor) if _is_leaf(tensor) or _retains_grad(tensor) else None,
    "requires_grad": vars(TensorBase)["requires_grad"].__get__,
}

HolderTable: TypeAlias = Mapping[int, Holders]  # by id of a parameter


@attrs.frozen
class Kind:
    """What variables have in common."""

    role: str
    type: str
    attributes: tuple[str, ...]


@attrs.define(eq=False, kw_only=True)
class TensorVariable(Variable):
    """A parameter or buffer, and how its attributes were when last looked at."""

    reference: Callable[[], torch.Tensor | None]  # weak
    slots: dict[str, Slot]
    marks: dict[str, Json] = attrs.field(factory=dict)  # what the program wrote onto it
    told: tuple[tuple[str, ...], Holders] = ((), ())  # its names and holders, as told last
    is_moved: bool = False  # they may be others now


@attrs.define(eq=False)
class _Reading:
    """An attribute that is not as it was, or may not be: its digest is still to be fetched."""

    slot: Slot
    value: Any
    mark: object
    is_zero_and_finite: tuple[bool, bool] | None = None  # of a gradient


@attrs.define(eq=False)
class Sight:
    """A variable that was looked at, and what of it may have to be told."""

    variable: TensorVariable
    is_gone: bool = False
    is_new: bool = False
    readings: list[_Reading] = attrs.field(factory=list)
    marks: dict[str, str] = attrs.field(factory=dict)

    def settle(self, contents: Contents) -> None:
        """Keep what is not as it was, now that it is known."""
        for reading in self.readings:
            reading.mark = contents.fetched(reading.mark)
        if not self.is_new:
            self.readings = [one for one in self.readings if one.mark != one.slot.seen]


class TensorVariables:
    """Follows the tensors of one role."""

    def __init__(self, kind: Kind, encoder: Encoder, tensor_format: TensorFormat) -> None:
        self.role = kind.role
        self.attributes = kind.attributes
        # Whether changes tell facts, too: until training begins parameters are initialised.
        self.tells_facts = kind.role == "parameter"
        self._type = kind.type
        self._encoder = encoder
        self._format = tensor_format
        self._by_object: dict[int, TensorVariable] = {}
        self._holders: HolderTable | None = None

    def __iter__(self) -> Iterator[TensorVariable]:
        return iter(self._by_object.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self._by_object

    @property
    def is_intact(self) -> bool:
        """Whether all tensors that were found are still there."""
        for one in self._by_object.values():  # noqa: SIM110  all() takes twice the time
            if one.reference() is None:
                return False
        return True

    def update(
        self,
        found: Mapping[int, Named[Any]],
        number: Callable[[Any], int],
        storage_of: Callable[[torch.Tensor, int], int],
    ) -> list[Change]:
        """Follow what was found, and nothing else; return what is gone.

        Args:
            found: The tensors, by id.
            number: Returns the number of a variable that begins with a tensor.
            storage_of: Returns the number of a tensor's memory, which may be that of the variable.
        """
        self._holders = None
        # An id may have come to stand for another object.
        left = [
            self._by_object.pop(key)
            for key, known in list(self._by_object.items())
            if key not in found or known.reference() is not found[key].value
        ]
        for key, named in found.items():
            names = tuple(named.names)
            variable = self._by_object.get(key)
            if variable is None:
                variable = self._successor(left, names, named.value)
                if variable is None:
                    variable = self._begin(number(named.value), named.value)
                variable.storage = storage_of(named.value, variable.id)
            self._by_object[key] = variable
            if variable.names != names:
                variable.names, variable.is_moved = names, True
        return [_gone(variable) for variable in left if variable.is_told]

    def variable_of(self, tensor: torch.Tensor) -> TensorVariable | None:
        """Return the variable that a tensor is, if it is one."""
        variable = self._by_object.get(id(tensor))
        return variable if variable is not None and variable.reference() is tensor else None

    def release(self, tensor: torch.Tensor) -> Callable[[], None] | None:
        """Refer to a tensor no more; return how to do so again, None if it is no variable."""
        variable = self.variable_of(tensor)
        if variable is None:
            return None
        variable.reference = _nothing

        def resume() -> None:
            variable.reference = weakref.ref(tensor)

        return resume

    def hold(self, holders: HolderTable) -> None:
        """Take note of which optimizers hold the tensors."""
        if holders is self._holders:
            return
        self._holders = holders
        for key, variable in self._by_object.items():
            held = holders.get(key, ())
            if variable.holders != held:
                variable.holders, variable.is_moved = held, True

    def read(
        self,
        contents: Contents,
        asked: Collection[str] | None,
        whole: Collection[str] | None,
        *,
        as_baseline: bool,
    ) -> list[Sight]:
        """Look at attributes (None: all), quickly at those not in `whole`.

        Returns what may have to be told.
        """
        sights = []
        names = [name for name in self.attributes if asked is None or name in asked]
        quick = _NOTHING if whole is None else frozenset(names).difference(whole)
        some = [(name, _READERS[name], name in quick) for name in names]
        every = [(name, _READERS[name], False) for name in self.attributes]
        for key, variable in list(self._by_object.items()):
            tensor = variable.reference()
            if tensor is None:
                del self._by_object[key]
                sights.append(Sight(variable, is_gone=True))
                continue
            is_new = as_baseline or not variable.is_told
            readings = _readings(contents, variable, tensor, every if is_new else some, is_new)
            reads_marks = "data" in (self.attributes if is_new else names)
            marks = None
            if reads_marks and vars(tensor):
                marks = self._new_marks(variable, tensor, is_new=is_new)
            if variable.is_moved:
                variable.is_moved = variable.told != (variable.names, variable.holders)
            if readings or marks or is_new or variable.is_moved:
                sights.append(Sight(variable, False, is_new, readings or [], marks or {}))  # noqa: FBT003  as it is made for each change
        return sights

    def settle(
        self, contents: Contents, sights: list[Sight], *, as_baseline: bool
    ) -> Iterator[Change]:
        """Yield the changes among what was read, when what was deferred has been fetched."""
        for sight in sights:
            sight.settle(contents)
        _fetch_zero_and_finite(contents, sights)
        for sight in sights:
            variable = sight.variable
            if sight.is_gone:
                if variable.is_told:
                    yield _gone(variable)
            elif sight.readings or sight.marks or sight.is_new or variable.is_moved:
                event = "baseline" if as_baseline else "appeared" if sight.is_new else "changed"
                yield self._change(event, sight, contents)

    def clear(self) -> None:
        """Follow nothing any more."""
        self._by_object.clear()

    def _change(self, event: str, sight: Sight, contents: Contents) -> Change:
        variable = sight.variable
        attributes = {}
        is_late = False
        tells_facts = self.tells_facts or (not variable.is_told and self.role == "parameter")
        for reading in sight.readings:
            slot = reading.slot
            attributes[slot.name] = self._value(contents, reading, tells_facts=tells_facts)
            is_late = is_late or slot.is_late
        if sight.marks:
            attributes.update(sight.marks)
        variable.is_told, variable.is_moved = True, False
        variable.told = variable.names, variable.holders
        return Change(event=event, variable=variable, attributes=attributes, is_late=is_late)

    def _value(self, contents: Contents, reading: _Reading, *, tells_facts: bool) -> str:
        """Return what was read, as JSON; it is what was seen last, from now on."""
        slot, value, mark = reading.slot, reading.value, reading.mark
        slot.seen = mark
        if slot.name == _FLAG or value is None:
            return _SAID[value]
        fields = contents.description(value, slot)
        if type(mark) is int:
            fields += f',"digest":"{digest_text(mark)}"'
            if reading.is_zero_and_finite is not None:
                is_zero, is_finite = reading.is_zero_and_finite
                fields += f',"zero":{_SAID[is_zero]},"finite":{_SAID[is_finite]}'
            if tells_facts and slot.name == "data":
                fields += self._facts(value)
            if self._format != "hash":
                part = self._encoder.tensor.local(value)
                is_dense = part.layout is torch.strided
                if is_dense and (described := described_content(part, self._format)):
                    fields += f",{dumps(described)[1:-1]}"
        return f'{{"tensor":{{{fields}}}}}'

    def _facts(self, value: torch.Tensor) -> str:
        """Return what else is told of what a parameter begins with, as JSON fields."""
        part = self._encoder.tensor.local(value)
        is_plain = is_ordinary(type(part)) and is_readable(part)
        found = all_equal(part) if is_plain else None
        return "" if found is None else f',"facts":{{"all_equal":{_SAID[found]}}}'

    def _new_marks(
        self, variable: TensorVariable, tensor: torch.Tensor, *, is_new: bool
    ) -> dict[str, str]:
        """Return what the program wrote onto a tensor since the last look, if it is primitive.

        Frameworks say there what a parameter is, as `tensor_model_parallel`.
        """
        written = vars(tensor)
        if is_new:
            variable.marks.clear()
        found = {
            name: value
            for name, value in written.items()
            if type(value) in _PRIMITIVE
            and type(name) is str
            and not name.startswith("_")
            and variable.marks.get(name) != value
        }
        variable.marks.update(found)
        return {start_of_text(name): dumps(self._encoder(value)) for name, value in found.items()}

    def _successor(
        self, left: list[TensorVariable], names: tuple[str, ...], tensor: torch.Tensor
    ) -> TensorVariable | None:
        """Return the variable that goes on in another tensor: a buffer that was assigned anew."""
        if self.role != "buffer":
            return None
        for variable in left:
            if variable.names[0] in names:
                left.remove(variable)
                variable.reference = weakref.ref(tensor)
                return variable
        return None

    def _begin(self, number: int, tensor: torch.Tensor) -> TensorVariable:
        return TensorVariable(
            id=number,
            role=self.role,
            type=self._type,
            storage=number,
            names=(),
            reference=weakref.ref(tensor),
            slots={name: Slot(name) for name in self.attributes},
        )


def memory_of(tensor: torch.Tensor) -> int:
    """Return a number that tensors in the same memory have in common."""
    return tensor.untyped_storage()._cdata if is_readable(tensor) else id(tensor)  # noqa: SLF001  no public name


def _readings(
    contents: Contents,
    variable: TensorVariable,
    tensor: torch.Tensor,
    attributes: Iterable[tuple[str, Callable[[torch.Tensor], Any], bool]],
    is_new: bool,  # noqa: FBT001  by position: it is called for each tensor of each look
) -> list[_Reading] | None:
    """Read attributes; return those that are not as they were, or may not be, if there are any.

    Args:
        contents: Reads tensors.
        variable: The variable.
        tensor: What it is now.
        attributes: Of each its name, what reads it, and whether to look quickly.
        is_new: All attributes are to be told.
    """
    readings = None
    slots = variable.slots
    for name, read, is_quick in attributes:
        slot = slots[name]
        value = read(tensor)
        if name == _FLAG:
            found = value
        elif value is None:
            found = _NONE
            slot.leave()
        else:
            found = contents.mark(value, slot, is_quick=is_quick)
        if found != slot.seen or is_new:
            told = contents.zero_and_finite(value, found) if name == "grad" else None
            if readings is None:
                readings = []
            readings.append(_Reading(slot, value, found, told))
    return readings


def _fetch_zero_and_finite(contents: Contents, sights: Iterable[Sight]) -> None:
    """Complete the readings of gradients that lie on a device."""
    far = [
        reading
        for sight in sights
        for reading in sight.readings
        if reading.is_zero_and_finite is None
        and reading.slot.name == "grad"
        and type(reading.mark) is int
    ]
    if far:
        told = contents.fetch_zero_and_finite(reading.value for reading in far)
        for reading, one in zip(far, told, strict=True):
            reading.is_zero_and_finite = one


def _nothing() -> None:
    """Return what a reference to nothing gives."""


def _gone(variable: Variable) -> Change:
    return Change(event="gone", variable=variable, attributes={})
