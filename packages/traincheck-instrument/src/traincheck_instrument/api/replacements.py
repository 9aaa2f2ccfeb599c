"""What was replaced, so that it can be put back."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_instrument.api.callables import function_in, held_like
from traincheck_instrument.api.namespaces import InClass, Place
from traincheck_instrument.api.signatures import Signature
from traincheck_instrument.api.wrapper import is_wrapper, original_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@attrs.frozen
class _Replacement:
    place: Place
    original: Any
    replacement: Any

    @property
    def is_in_place(self) -> bool:
        return self.place.get() is self.replacement


@attrs.define(eq=False)
class Replacements:
    """Puts things in place of others, and later back the very objects.

    Where somebody else put a third thing since, that stays. A class of the program may end before
    the recording does: of wrappers in it only their names are kept.
    """

    _on_suspension: Callable[[], None] = lambda: None  # before they are out of place
    _done: list[_Replacement] = attrs.field(factory=list)
    # By id: the hash of a class may run code of its metaclass.
    _in_classes: dict[int, tuple[weakref.ref[type], list[str]]] = attrs.field(factory=dict)
    _suspended: list[_Replacement] = attrs.field(factory=list)
    _suspensions: int = 0

    def __bool__(self) -> bool:
        return bool(self._done)

    def put(self, place: Place, replacement: Any) -> str | None:
        """Put something in a place; return why it can't be done, if so."""
        original = place.get()
        reason = _set(place, replacement)
        if reason is None:
            self._done.append(_Replacement(place, original, replacement))
        return reason

    def wrap_in_class(self, place: InClass, wrapper: Callable[..., Any]) -> str | None:
        """Put a wrapper into a class that may end at any time; return why it can't be done."""
        reason = _set(place, held_like(place.get(), wrapper))
        if reason is None:
            key = id(place.owner)
            if key not in self._in_classes:
                forget = weakref.ref(place.owner, lambda _: self._in_classes.pop(key, None))
                self._in_classes[key] = forget, []
            self._in_classes[key][1].append(place.name)
        return reason

    def put_back(self) -> None:
        """Put everything back, for good."""
        self._restore()
        self._done.clear()
        self._in_classes.clear()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Have the originals in place for a while."""
        self._suspensions += 1
        if self._suspensions == 1:
            self._on_suspension()
            self._suspended = self._restore()
        try:
            yield
        finally:
            self._suspensions -= 1
            if not self._suspensions:
                suspended, self._suspended = self._suspended, []
                for one in reversed(suspended):
                    if one.place.get() is one.original:
                        one.place.set(one.replacement)

    def _restore(self) -> list[_Replacement]:
        """Put originals back; return what stood in their places, the last first."""
        restored = []
        for one in (*self._wrapped_in_classes(), *reversed(self._done)):
            if one.is_in_place:
                one.place.set(one.original)
                _give_back(function_in(one.replacement), function_in(one.original))
                restored.append(one)
        return restored

    def _wrapped_in_classes(self) -> Iterator[_Replacement]:
        for reference, names in list(self._in_classes.values()):
            owner = reference()
            for place in () if owner is None else [InClass(owner, name) for name in names]:
                held = place.get()
                wrapper = function_in(held)
                if is_wrapper(wrapper):
                    yield _Replacement(place, held_like(held, original_of(wrapper)), held)


def _set(place: Place, value: Any) -> str | None:
    try:
        place.set(value)
    except (AttributeError, TypeError) as error:
        return str(error)
    return None


def _give_back(wrapper: Any, original: Any) -> None:
    """Give a function the attributes that the program has set on its wrapper meanwhile."""
    if isinstance(wrapper, types.FunctionType) and isinstance(original, types.FunctionType):
        original.__dict__.update(
            (name, value)
            for name, value in vars(wrapper).items()
            if name != "__wrapped__" and type(value) is not Signature
        )
