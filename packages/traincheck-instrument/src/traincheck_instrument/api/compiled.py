"""Takes note of what the program has compiled: calls in it are compiled away, and not seen."""

from __future__ import annotations

import functools
import importlib
import types
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.api.namespaces import InModule
from traincheck_instrument.api.wrapper import CODE, is_wrapper
from traincheck_instrument.encode.names import FUNCTIONS, function_name, type_name
from traincheck_instrument.recorder.calls import Calls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from traincheck_instrument.api.namespaces import Place
    from traincheck_instrument.recorder.faults import Faults

_WHY = "compiled by {}: the calls in it that are compiled away are not recorded"
# What each of them compiles, or replays, without the Python code of the program.
_COMPILERS = (
    (torch, "compile", "torch.compile"),
    (torch.jit, "script", "torch.jit.script"),
    (torch.jit, "trace", "torch.jit.trace"),
)
_KEYWORDS = ("model", "obj", "func")  # by which what they compile may be passed


class Compilations:
    """Tells once of each thing that is compiled; `not_observed` holds them all."""

    def __init__(
        self,
        suspended: Callable[[], AbstractContextManager[None]],
        tell: Callable[[], None],
        faults: Faults,
    ) -> None:
        """Take note of nothing yet.

        Args:
            suspended: Has the functions themselves in place for a while.
            tell: Called when there is something new in `not_observed`.
            faults: Where own faults are told.
        """
        self.not_observed: dict[str, str] = {}
        self._suspended = suspended
        self._tell = tell
        self._faults = faults
        self._has_prepared = False

    def wrappers(self) -> Iterator[tuple[Place, Callable[..., Any]]]:
        """Yield what is to stand in which place."""
        for module, attribute, name in _COMPILERS:
            place = InModule(module, attribute)
            yield place, self._wrap(place.get(), name)

    def _wrap(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  as it is called
            if args and is_wrapper(args[0]):  # the compiler shall begin with the function itself
                args = (args[0].__wrapped__, *args[1:])
            if name == "torch.compile":
                self._prepare()
            with self._suspended():  # how it goes about it depends on who wrote the forward
                compiled = original(*args, **kwargs)
            for one in (*args[:1], *(kwargs[key] for key in _KEYWORDS if key in kwargs)):
                self._note(one, name)
            return compiled

        return compile

    def _note(self, compiled: Any, name: str) -> None:
        try:
            what = _described(compiled)
            if what is not None and what not in self.not_observed:
                self.not_observed[what] = _WHY.format(name)
                self._tell()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._faults.contain("what is compiled", error)

    def _prepare(self) -> None:
        """Let the compiler see functions, not wrappers, in its tables, and compile nothing of ours.

        It makes its tables when it is imported and first asked, and knows functions by identity.
        """
        if self._has_prepared:
            return
        self._has_prepared = True
        try:
            with self._suspended():
                rules = importlib.import_module("torch._dynamo.trace_rules")
                rules.get_torch_obj_rule_map()
            _hide()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self._faults.contain("the compiler", error)


def _hide() -> None:
    """Have the compiler pass over what runs between the parts that it compiles.

    All wrappers share one code, which it would compile anew for each until it gives up; what they
    call in the program goes on being compiled. What they call of ours is left alone altogether.
    """
    evaluation = importlib.import_module("torch._C._dynamo.eval_frame")
    action = evaluation._FrameAction  # noqa: SLF001  there is no public way to leave out callees
    strategy = evaluation._FrameExecStrategy  # noqa: SLF001  as above
    evaluation.set_code_exec_strategy(CODE, strategy(action.SKIP, action.DEFAULT))
    for function in (Calls.begin, Calls.end):
        code = function.__code__
        evaluation.set_code_exec_strategy(code, strategy(action.SKIP, action.SKIP))


def _described(compiled: Any) -> str | None:
    """Return what is compiled, in words; nothing of the program's is called for it."""
    if issubclass(type(compiled), torch.nn.Module):
        return f"forward of {type_name(type(compiled))}"
    if type(compiled) is types.MethodType:
        owner, function = compiled.__self__, compiled.__func__
        if issubclass(type(owner), torch.nn.Module) and type(function) is types.FunctionType:
            is_call = function.__name__ == "_call_impl"
            method = "forward" if is_call else function.__name__
            return f"{method} of {type_name(type(owner))}"
        return None
    return function_name(compiled) if isinstance(compiled, FUNCTIONS) else None
