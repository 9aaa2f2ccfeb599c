"""What can be seen of a training from inside its process; imported by the programs under test.

Nothing here is known to TrainCheck, and nothing is asked of the program: models, optimizers and
tensors are found among the objects that are alive. Garbage collection stays off, so that a tensor
that lives longer than it did is seen.
"""

from __future__ import annotations

import gc
import hashlib
import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "witness: "


class Witness:
    """Follows a program, whose clock it is told to watch, and says at its end what it saw."""

    def __init__(self) -> None:
        gc.disable()
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002  what programs seed
        self._ticks = 0
        self._alive: dict[int, dict[str, int]] = {}
        self._graphs: dict[int, dict[str, int]] = {}

    def tick(self, *, at: tuple[int, ...]) -> None:
        """Note which tensors are alive and which graphs they hold, at some calls of this."""
        self._ticks += 1
        if self._ticks in at:
            tensors = [*_living(torch.Tensor)]
            self._alive[self._ticks] = _count(str(tuple(each.shape)) for each in tensors)
            self._graphs[self._ticks] = _count(_nodes(tensors))

    def tell(self) -> None:
        """Print what is to be the same in every run."""
        with torch.no_grad():
            seen = {
                "weights": sorted(_weights()),
                "optimizers": sorted(_optimizer_states()),
                "random": _random_states(),
                "alive": self._alive,
                "graphs": self._graphs,
            }
        print(MARK + json.dumps(seen))  # noqa: T201


def _living(kind: type) -> Iterator[Any]:
    """Yield the objects of a type, by what they are and not by what they say that they are."""
    return (each for each in gc.get_objects() if issubclass(type(each), kind))


def _weights() -> Iterator[str]:
    for module in _living(torch.nn.Module):
        for name, tensor in {**module._parameters, **module._buffers}.items():
            if tensor is not None:
                yield f"{type(module).__name__}.{name} {_digest(tensor)} {_digest(tensor.grad)}"


def _optimizer_states() -> Iterator[str]:
    for optimizer in _living(torch.optim.Optimizer):
        for group in optimizer.param_groups:
            yield f"{ {key: value for key, value in group.items() if key != 'params'} }"
            for parameter in group["params"]:
                state = optimizer.state[parameter].items() if parameter in optimizer.state else ()
                yield " ".join(f"{name}={_digest(value)}" for name, value in state)


def _digest(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    content = value.detach().contiguous().view(torch.uint8) if value.dim() else value.detach()
    return _hash(content.numpy().tobytes())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _random_states() -> dict[str, str]:
    states = {
        "torch": _digest(torch.get_rng_state()),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002  as above
        "python": random.getstate(),
    }
    return {name: _hash(repr(state).encode()) for name, state in states.items()}


def _nodes(tensors: list[torch.Tensor]) -> Iterator[str]:
    """Yield the name of each node of the graphs that hold the tensors."""
    waiting = [each.grad_fn for each in tensors if each.grad_fn is not None]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node.name()
            waiting += [following for following, _ in node.next_functions if following is not None]


def _count(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


witness = Witness()
