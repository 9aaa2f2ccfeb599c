"""The `proxy` tracker: notices what the program reaches through its model, and puts in its place.

While it is at work, methods of `torch.nn.Module` and of its containers tell it who calls them. The
model is left alone, and so is its class: programs count on it, ask `type(model)` for it, and call
`super(type(self), self)`.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import torch
from torch.compiler import is_compiling, is_dynamo_compiling

from traincheck_instrument.api.namespaces import InClass, members_of, mro_of
from traincheck_instrument.api.replacements import Replacements
from traincheck_instrument.trackers.parameter import SubclassTracker
from traincheck_instrument.variables.module_tree import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from traincheck_instrument.trackers.noticing import Noticing

_Module: TypeAlias = torch.nn.Module
_Method: TypeAlias = "Callable[..., Any]"

_CLASSES = (_Module, torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
# Methods that hand out all parts of a model, or change all of them.
_REACHING = (
    *("parameters", "named_parameters", "buffers", "named_buffers"),
    *("modules", "named_modules", "children", "named_children", "__iter__", "__getitem__"),
    *("get_parameter", "get_buffer", "get_submodule", "apply", "requires_grad_", "train", "eval"),
    *("to", "to_empty", "half", "float", "double", "bfloat16", "type", "cpu", "cuda"),
)
# Methods that put parts in place past `__setattr__`.
_BUILDING = ("register_parameter", "register_buffer", "register_module", "add_module")


@attrs.frozen
class _Model:
    """A tracked model, which is not kept alive."""

    reference: weakref.ref[_Module]
    name: str
    own_code: Mapping[int, CodeType]  # of its methods, by id: to hash it takes in all that it holds


class ProxyTracker(SubclassTracker):
    """Follows parameters as the `subclass` tracker does, and what is reached through a model."""

    def __init__(self, noticing: Noticing) -> None:
        super().__init__(noticing)
        self._models: dict[int, _Model] = {}
        self._wrapped = Replacements()

    def adopt(self, model: _Module, name: str) -> None:
        """Notice from now on what is done through a model.

        Raises:
            TypeError: of a model whose parts are not reached through `torch.nn.Module`.
        """
        if issubclass(type(model), torch.jit.ScriptModule):
            raise TypeError(f"{name} is scripted: it can have no proxy")
        key, models = id(model), self._models
        own_code = {id(code): code for code in _code_of(type(model))}
        reference = weakref.ref(model, lambda _: models.pop(key, None))
        models[key] = _Model(reference, name, own_code)
        if not self._is_resting:
            self._begin()

    def uninstall(self) -> None:
        """Put the methods back; may be called twice."""
        super().uninstall()
        self._wrapped.put_back()
        self._models.clear()

    def rest(self) -> None:
        """Put the methods back for a while."""
        super().rest()
        if self._is_resting:
            self._wrapped.put_back()

    def wake(self) -> None:
        """Notice again."""
        super().wake()
        if self._models and not self._is_resting:
            self._begin()

    def _begin(self) -> None:
        if self._wrapped:
            return
        for place, wrap in _places():
            self._wrapped.put(place, wrap(place.get(), self))

    def has(self, module: _Module) -> bool:
        """Whether a module is a model that is tracked."""
        return id(module) in self._models

    def reach(self, model: _Module, method: str, part: str = "") -> None:
        """Take note that a part of a model was reached by a method; its own code is no news.

        To be called by what stands in place of the method.
        """
        if is_compiling() or not self._noticing.is_on:
            return
        known, caller = self._models.get(id(model)), _caller(method)
        if known is not None and id(caller.f_code) not in known.own_code:
            self._noticing.reached(f"{known.name}.{part}" if part else known.name, caller)

    def build(self, model: _Module, method: str, part: str, *, is_part: bool) -> None:
        """Take note that a method has set or deleted what may be a part of a model.

        To be called by what stands in place of the method.
        """
        if is_compiling() or not self._noticing.is_on:
            return
        known = self._models.get(id(model))
        if known is not None and (is_part or _is_part(model, part)):
            self._noticing.rebuilt(f"{known.name}.{part}", _caller(method))


def _places() -> Iterator[tuple[InClass, Callable[[_Method, ProxyTracker], _Method]]]:
    """Yield what is to be wrapped, and by what."""
    yield InClass(_Module, "__getattr__"), _getting
    yield InClass(_Module, "__setattr__"), _setting
    yield InClass(_Module, "__delattr__"), _deleting
    for kind in _CLASSES:
        held = members_of(kind)
        for names, wrap in ((_REACHING, _reaching), (_BUILDING, _building)):
            for name in names:
                if isinstance(held.get(name), FunctionType):
                    yield InClass(kind, name), wrap


# The compiler knows what `is_dynamo_compiling` says, and leaves out all that follows. It passes
# over code with the names that these three have.


def _getting(original: _Method, tracker: ProxyTracker) -> _Method:
    @functools.wraps(original)
    def __getattr__(self: _Module, name: str) -> Any:  # noqa: N807  see above
        found = original(self, name)
        if not is_dynamo_compiling() and tracker.has(self):
            tracker.reach(self, "__getattr__", name)
        return found

    return __getattr__


def _setting(original: _Method, tracker: ProxyTracker) -> _Method:
    @functools.wraps(original)
    def __setattr__(self: _Module, name: str, value: Any) -> None:  # noqa: N807  see above
        original(self, name, value)
        if not is_dynamo_compiling() and tracker.has(self):
            tracker.build(self, "__setattr__", name, is_part=False)

    return __setattr__


def _deleting(original: _Method, tracker: ProxyTracker) -> _Method:
    @functools.wraps(original)
    def __delattr__(self: _Module, name: str) -> None:  # noqa: N807  see above
        original(self, name)
        if not is_dynamo_compiling() and tracker.has(self):
            tracker.build(self, "__delattr__", name, is_part=True)

    return __delattr__


def _reaching(original: _Method, tracker: ProxyTracker) -> _Method:
    name = original.__name__

    @functools.wraps(original)
    def method(self: _Module, *args: Any, **kwargs: Any) -> Any:
        if not is_dynamo_compiling() and tracker.has(self):
            tracker.reach(self, name)
        return original(self, *args, **kwargs)

    return method


def _building(original: _Method, tracker: ProxyTracker) -> _Method:
    name = original.__name__

    @functools.wraps(original)
    def method(self: _Module, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if not is_dynamo_compiling() and tracker.has(self):
            tracker.build(self, name, args[0] if args else kwargs["name"], is_part=False)
        return result

    return method


def _caller(method: str) -> FrameType:
    """Return who called a method of a model, which may have overridden it and called ours."""
    caller = sys._getframe(3)  # noqa: SLF001  the documented way to a frame
    while caller.f_code.co_name == method and caller.f_back is not None:
        caller = caller.f_back
    return caller


def _is_part(model: _Module, name: str) -> bool:
    fields = fields_of(model)
    return any(name in fields.get(table, ()) for table in ("_parameters", "_buffers", "_modules"))


def _code_of(cls: type) -> Iterator[CodeType]:
    """Yield the code of all methods of a class, and of the functions inside them."""
    for base in mro_of(cls):
        for member in members_of(base).values():
            function = member.fget if isinstance(member, property) else member
            while isinstance(function, FunctionType):
                yield from _nested(function.__code__)
                function = vars(function).get("__wrapped__")


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
