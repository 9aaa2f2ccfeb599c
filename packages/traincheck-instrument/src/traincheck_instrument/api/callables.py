"""What may be wrapped: functions, and how a class or module holds them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch.overrides import get_testing_overrides

Function: TypeAlias = Callable[..., Any]

_RETURN_AT_ONCE = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
# Of what `contextmanager` makes of any generator function.
_MAKES_MANAGER = contextmanager(lambda: iter(())).__code__


def function_in(held: Any, *, with_builtins: bool = False) -> Function | None:
    """Return the function that a module or class holds, also as a static or class method.

    Only exact types: an object that merely can be called has a behaviour of its own, as `partial`
    and what `lru_cache` makes; it stays as it is. Builtins are those that bind like a function of
    the owner would: functions in modules, descriptors in classes. Not what makes a context manager:
    that is told as a context of the calls inside, and the compiler knows some by identity.
    """
    kind = type(held)
    if kind is types.FunctionType:
        return None if held.__code__ is _MAKES_MANAGER else held
    if kind is staticmethod or kind is classmethod:
        inner = held.__func__
        return inner if type(inner) is types.FunctionType else None
    if with_builtins and (kind is types.BuiltinFunctionType or kind is types.MethodDescriptorType):
        return held  # type: ignore[no-any-return]
    return None


def held_like(held: Any, wrapper: Function) -> Any:
    """Return a wrapper in the form in which the function was held."""
    kind = type(held)
    return kind(wrapper) if kind is staticmethod or kind is classmethod else wrapper


def why_not(function: Function) -> str | None:
    """Say why calls of a function say nothing, if so."""
    if not isinstance(function, types.FunctionType):
        return None
    is_late = function.__code__.co_flags & _RETURN_AT_ONCE
    return "a generator or coroutine: its call does nothing yet" if is_late else None


def parameter_names(function: Function) -> tuple[str, ...]:
    """Return the names of the positional parameters; of a builtin, if torch tells them."""
    innermost = inspect.unwrap(function)
    if isinstance(innermost, types.BuiltinFunctionType):
        return tuple(one.name for one in _schema_of(innermost) if not one.kwarg_only) or (
            _names_in_stand_in(innermost)
        )
    return _names_in_code(innermost)


def defaults_of(function: Function) -> dict[str, Any]:
    """Return what the parameters of a function are that a call leaves out, by name."""
    innermost = inspect.unwrap(function)
    if isinstance(innermost, types.BuiltinFunctionType):
        return {
            one.name: one.default_value for one in _schema_of(innermost) if one.has_default_value()
        }
    if not isinstance(innermost, types.FunctionType):
        return {}
    names, values = _names_in_code(innermost), innermost.__defaults__ or ()
    positional = zip(names[len(names) - len(values) :], values, strict=True)
    return dict(positional) | (innermost.__kwdefaults__ or {})


def _names_in_code(function: Function | None) -> tuple[str, ...]:
    if not isinstance(function, types.FunctionType):
        return ()
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def _names_in_stand_in(builtin: types.BuiltinFunctionType) -> tuple[str, ...]:
    """Return the names in what torch has for tests in place of a builtin: there may be more."""
    return _names_in_code(get_testing_overrides().get(builtin))


def _schema_of(builtin: types.BuiltinFunctionType) -> Sequence[Any]:
    """Return the arguments of the operator of this name, if it has the signature of the builtin.

    Others have several signatures, or call what is the `input` of a function `self`.
    """
    named = _names_in_stand_in(builtin)
    operator = getattr(torch.ops.aten, builtin.__name__, None)
    if not named or operator is None or operator.overloads() != ["default"]:
        return ()
    arguments: Sequence[Any] = operator.default._schema.arguments  # noqa: SLF001  no public name
    return arguments if tuple(one.name for one in arguments[: len(named)]) == named else ()
