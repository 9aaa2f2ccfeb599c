"""Lets those who read or trace functions see the functions themselves, not their wrappers.

A script compiler reads the source, a tracer notes which function was called.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from traincheck_instrument.api.namespaces import ABSENT, InClass, InModule, names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from traincheck_instrument.api.namespaces import Place

_READERS = (
    ("torch.jit", "script"),
    ("torch.jit", "trace"),
    ("torch.jit", "trace_module"),
)
_TRACERS = (("torch.fx", "Tracer", "trace"),)


def readers(
    suspended: Callable[[], AbstractContextManager[None]],
) -> Iterator[tuple[Place, Callable[..., Any]]]:
    """Yield a reader that has wrappers suspended, and the place in which it is to stand."""
    for place in _places():
        original = place.get()
        if original is not ABSENT:
            yield place, _undisturbed(original, suspended)


def _places() -> Iterator[Place]:
    for module_name, name in _READERS:
        if (module := sys.modules.get(module_name)) is not None:
            yield InModule(module, name)
    for module_name, kind, name in _TRACERS:
        if (module := sys.modules.get(module_name)) is not None:
            yield InClass(names_in(module)[kind], name)


def _undisturbed(
    original: Callable[..., Any], suspended: Callable[[], AbstractContextManager[None]]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        with suspended():
            return original(*args, **kwargs)

    return read
