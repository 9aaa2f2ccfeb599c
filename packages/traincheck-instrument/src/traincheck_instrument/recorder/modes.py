"""Keeps modes and subclasses of the program out of what the recorder does with tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

# The public form of this leaves the function modes on.
without_functions = torch._C.DisableTorchFunction  # noqa: SLF001
# The public form of what is done with these asks the modes, and imports sympy.
count_modes = torch._C._len_torch_dispatch_stack  # noqa: SLF001
_mode_at = torch._C._get_dispatch_stack_at  # noqa: SLF001
_pop = torch._C._pop_torch_dispatch_stack  # noqa: SLF001
_push = torch._C._push_on_torch_dispatch_stack  # noqa: SLF001


def without_modes() -> AbstractContextManager[object]:
    """Switch off function modes, dispatch modes and the functions of subclasses, in this thread.

    Where it is done twice a call it is written out: to call this takes as long as what it does.
    """
    return WithoutAny() if count_modes() else without_functions()


class WithoutAny:
    """Has the dispatch modes off, too; a signal in the middle leaves them as they were."""

    def __init__(self) -> None:
        self._modes: list[Any] = [_mode_at(index) for index in range(count_modes())]
        self._functions = without_functions()

    def __enter__(self) -> None:
        self._functions.__enter__()
        try:
            while count_modes():
                _pop(None)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            for mode in self._modes[count_modes() :]:
                _push(mode)
        finally:
            self._functions.__exit__(None, None, None)
