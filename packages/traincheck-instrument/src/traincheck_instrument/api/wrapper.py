"""The wrapper around a function."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling, is_dynamo_compiling

from traincheck_instrument.api.signatures import Signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.recorder.recorder import Recorder


def wrap(
    original: Callable[..., Any], spec: FunctionSpec, recorder: Recorder
) -> Callable[..., Any]:
    """Return a function that does what `original` does and reports its calls."""
    clock, thread = recorder.clock, recorder.thread
    calls = recorder.calls
    begin, end = calls.begin, calls.end

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        # The compiler knows the first answer, and leaves out all that follows. The last one, which
        # is for exporters, takes twice the time, most of all that a step costs that is left out.
        if is_dynamo_compiling() or not clock.is_recording or thread.is_busy or is_compiling():
            return original(*args, **kwargs)
        call = begin(spec, args, kwargs)
        if call is None:
            return original(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            end(call, None, error)
            raise
        end(call, result)
        return result

    wrapper.__code__ = CODE
    functools.update_wrapper(wrapper, original)
    if isinstance(original, types.FunctionType):
        # They say nothing to the interpreter, as the code takes everything, but to who reads them.
        wrapper.__defaults__ = original.__defaults__
        wrapper.__kwdefaults__ = original.__kwdefaults__
        if "__signature__" not in vars(original) and "__wrapped__" not in vars(original):
            vars(wrapper)["__signature__"] = Signature(original)
    return wrapper


def _code() -> types.CodeType:
    """Return the code of all wrappers, which warnings pass over.

    A warning about the caller of a function counts frames, and leaves out those of files with both
    of these words in their names.
    """
    codes = (one for one in wrap.__code__.co_consts if isinstance(one, types.CodeType))
    code = next(one for one in codes if one.co_name == "wrapper")
    return code.replace(co_filename=f"{code.co_filename} (passed over as importlib._bootstrap is)")


CODE = _code()
_ORIGINAL = CODE.co_freevars.index("original")


def is_wrapper(function: Any) -> bool:
    """Whether a function is one that `wrap` made."""
    return type(function) is types.FunctionType and function.__code__ is CODE


def original_of(wrapper: Any) -> Any:
    """Return the function that a wrapper stands for."""
    return wrapper.__closure__[_ORIGINAL].cell_contents
