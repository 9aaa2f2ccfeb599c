"""The wrapper around a public function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincheck_instrument.api.spec import FunctionSpec
    from traincheck_instrument.recorder import Recorder


def wrap(
    original: Callable[..., Any], spec: FunctionSpec, recorder: Recorder
) -> Callable[..., Any]:
    """Return a function that does what `original` does and reports its calls."""
    clock, thread = recorder.clock, recorder.thread
    begin, end, fail = recorder.begin, recorder.end, recorder.fail

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        # The compiler knows the first answer, and leaves out all that follows.
        if is_compiling() or not clock.is_recording or thread.is_busy:
            return original(*args, **kwargs)
        call = begin(spec, args, kwargs)
        if call is None:
            return original(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            fail(call, error)
            raise
        end(call, result)
        return result

    return wrapper
