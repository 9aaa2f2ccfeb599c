"""Describes tensors without reading them, and without running code of a subclass.

To be called with torch functions disabled, as the recorder does: otherwise `__torch_function__` of
a subclass would be asked for what is read here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch._C import TensorBase, _functorch
from torch.utils._python_dispatch import TorchDispatchMode

from traincheck_instrument.encode.names import TypeTable, type_name

if TYPE_CHECKING:
    from traincheck_instrument.encode.scalars import Json

# A subclass may define properties of these names.
_shape_of = vars(TensorBase)["shape"].__get__
_dtype_of = vars(TensorBase)["dtype"].__get__
_device_of = vars(TensorBase)["device"].__get__
_layout_of = vars(TensorBase)["layout"].__get__
_requires_grad = vars(TensorBase)["requires_grad"].__get__
is_wrapped = _functorch.is_functorch_wrapped_tensor  # by `vmap` and the like
_is_nested = vars(TensorBase)["is_nested"].__get__

Describe: TypeAlias = Callable[[torch.Tensor], dict[str, "Json"]]

_READ = (
    "shape",
    "dtype",
    "device",
    "layout",
    "requires_grad",
    "__getattribute__",
    "__torch_dispatch__",
)
_FAKE = ("torch._subclasses.fake_tensor", "FakeTensor")
_QUANTIZED = frozenset({torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4})


class NotDescribedError(Exception):
    """What is asked of a tensor is computed by code of the program."""


class _Refusal(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's is not typed
    """Takes the place of the `__torch_dispatch__` of any class."""

    def __torch_dispatch__(self, func: Any, *_: Any) -> Any:
        raise NotDescribedError(str(func))


class TensorDescriber:
    """Describes tensors; remembers how dtypes and devices are written."""

    def __init__(self) -> None:
        self._describers = TypeTable(self.describer)
        self._dtypes: dict[torch.dtype, str] = {}
        self._dense_dtypes: dict[torch.dtype, str] = {}
        self._devices: dict[torch.device, str] = {}

    def __call__(self, value: torch.Tensor) -> dict[str, Json]:
        """Return the fields of a tensor; of a distributed one `shape` is that of the local part.

        Raises:
            NotDescribedError: only code of the program could tell them.
        """
        return self._describers[type(value)](value)

    def describer(self, kind: type) -> Describe:
        """Return what describes the tensors of a type."""
        if _is_distributed(kind):
            return self._describe_distributed
        if _is_of(kind, *_FAKE):
            return self._describe_fake
        if _has_own_dispatch(kind):
            return self._describe_guarded
        return self._describe_plain if _is_plain(kind) else self._describe

    def is_plain(self, kind: type) -> bool:
        """Whether the tensors of a type are described as torch has them."""
        return self.describer(kind) == self._describe_plain

    def _describe_plain(self, value: torch.Tensor) -> dict[str, Json]:
        """Describe a tensor as `_describe` does, in two thirds of the time; nearly all are such."""
        dtype = self._dense_dtypes.get(value.dtype)
        if dtype is None or value.layout is not torch.strided or is_wrapped(value):
            return self._describe(value)
        try:
            shape = list(value.shape)
        except RuntimeError:  # a nested tensor
            return self._describe(value)
        described: dict[str, Json] = {
            "shape": shape,
            "dtype": dtype,
            "device": self.device(value.device),
        }
        if value.requires_grad:
            described["requires_grad"] = True
        return described

    def _describe(self, value: torch.Tensor) -> dict[str, Json]:
        dtype = _dtype_of(value)
        try:
            # A symbolic size is not asked for its number, which would bind what is being traced.
            shape = [size if type(size) is int else None for size in _shape_of(value)]
        except RuntimeError:  # a nested tensor whose parts differ
            shape = [_size(value, dimension) for dimension in range(TensorBase.dim(value))]
        described: dict[str, Json] = {
            "shape": shape,
            "dtype": self.dtype(dtype),
            "device": self.device(_device_of(value)),
        }
        if _layout_of(value) is not torch.strided or dtype in _QUANTIZED or None in shape:
            described["layout"] = _unusual_layout(value, dtype)
        elif is_wrapped(value):
            described["layout"] = "functorch"
        if _requires_grad(value):
            described["requires_grad"] = True
        return described

    def _describe_fake(self, value: torch.Tensor) -> dict[str, Json]:
        return {**self._describe(value), "layout": "fake"}

    def _describe_guarded(self, value: torch.Tensor) -> dict[str, Json]:
        """Describe a tensor of a class that may compute its shape and device by code of its own."""
        with _Refusal():  # type: ignore[no-untyped-call]  # see its class
            return self._describe(value)

    def _describe_distributed(self, value: Any) -> dict[str, Json]:
        described = self(self.local(value))
        if _requires_grad(value):
            described["requires_grad"] = True
        described["global_shape"] = list(_shape_of(value))
        described["placements"] = [_placement(one) for one in value._spec.placements]  # noqa: SLF001  what DTensor reads too
        return described

    def local(self, value: torch.Tensor) -> torch.Tensor:
        """Return the part of a distributed tensor that lies in this process; no communication."""
        if self._describers[type(value)] != self._describe_distributed:
            return value
        # to_local() would enter autograd.
        local: torch.Tensor = value._local_tensor  # type: ignore[attr-defined]  # noqa: SLF001
        return local

    def dtype(self, dtype: torch.dtype) -> str:
        """Return torch's name of a dtype without its prefix."""
        if (name := self._dtypes.get(dtype)) is None:
            name = self._dtypes[dtype] = str(dtype).removeprefix("torch.")
            if dtype not in _QUANTIZED:
                self._dense_dtypes[dtype] = name
        return name

    def device(self, device: torch.device) -> str:
        """Return a device as torch writes it, such as `cuda:0`."""
        if (name := self._devices.get(device)) is None:
            name = self._devices[device] = str(device)
        return name


def _is_plain(kind: type) -> bool:
    """Whether a type leaves all that is read of a tensor as torch has it."""
    own = [vars(base) for base in kind.__mro__[: kind.__mro__.index(torch.Tensor)]]
    return not any(name in names for names in own for name in _READ)


def _has_own_dispatch(kind: type) -> bool:
    """Whether a type computes on its tensors by code that is not torch's."""
    definer = next(base for base in kind.__mro__ if "__torch_dispatch__" in vars(base))
    return not type_name(definer).startswith("torch.")


def _is_distributed(kind: type) -> bool:
    return _is_of(kind, "torch.distributed.tensor", "DTensor")


def _is_of(kind: type, module: str, name: str) -> bool:
    """Whether a type is, or is below, one of a module that may not be imported; then it is not."""
    base = getattr(sys.modules.get(module), name, None)
    return isinstance(base, type) and issubclass(kind, base)


def _size(value: torch.Tensor, dimension: int) -> int | None:
    try:
        return TensorBase.size(value, dimension)
    except RuntimeError:
        return None


def _unusual_layout(value: torch.Tensor, dtype: torch.dtype) -> str | None:
    if (layout := _layout_of(value)) is not torch.strided:
        return str(layout).removeprefix("torch.")
    if dtype in _QUANTIZED:
        return "quantized"
    return "nested" if _is_nested(value) else None


def _placement(placement: Any) -> str:
    """Write how a tensor is spread over one dimension of a mesh: `Shard(0)`, `Partial(sum)`."""
    detail = getattr(placement, "dim", getattr(placement, "reduce_op", ""))
    return f"{type(placement).__name__}({detail})"
