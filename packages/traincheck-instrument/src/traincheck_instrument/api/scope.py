"""Which functions are recorded: what a program does, not what prepares or inspects it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Container

TORCH = "torch"
MAIN = "__main__"  # the script

# Recording would take part in itself: the thread that writes uses them.
_OWN = frozenset(
    (
        "attr",
        "attrs",
        "cattr",
        "cattrs",
        "traincheck_instrument",
        "traincheck_trace_schema",
        "xxhash",
    )
)
# The dispatcher, and what traces, transforms and compiles programs: they know functions by
# identity, and call them in order to look at them.
_MACHINERY = frozenset(
    {
        "torch._C",
        "torch._VF",
        "torch._awaits",
        "torch._compile",
        "torch._custom_op",
        "torch._custom_ops",
        "torch._decomp",
        "torch._dispatch",
        "torch._dynamo",
        "torch._environment",
        "torch._export",
        "torch._functorch",
        "torch._guards",
        "torch._higher_order_ops",
        "torch._inductor",
        "torch._jit_internal",
        "torch._lazy",
        "torch._library",
        "torch._logging",
        "torch._meta_registrations",
        "torch._namedtensor_internals",
        "torch._native",
        "torch._numpy",
        "torch._ops",
        "torch._prims",
        "torch._prims_common",
        "torch._python_dispatcher",
        "torch._refs",
        "torch._sources",
        "torch._strobelight",
        "torch._subclasses",
        "torch._tensor_str",
        "torch._thread_safe_fork",
        "torch._utils_internal",
        "torch._vendor",
        "torch._vmap_internals",
        "torch._weights_only_unpickler",
        "torch.autograd.function",
        "torch.compiler",
        "torch.export",
        "torch.fx",
        "torch.jit",
        "torch.library",
        "torch.onnx",
        "torch.overrides",
        "torch.package",
        "torch.testing",
        "torch.utils._cxx_pytree",
        "torch.utils._device",
        "torch.utils._mode_utils",
        "torch.utils._python_dispatch",
        "torch.utils._pytree",
        "torch.utils._traceback",
    }
)

# Device housekeeping and tooling: they don't compute a training step.
_LEFT_OUT_MODULES = frozenset(
    {
        "torch.accelerator",
        "torch.ao",
        "torch.autograd.forward_ad",
        "torch.autograd.functional",
        "torch.autograd.gradcheck",
        "torch.autograd.graph",
        "torch.autograd.profiler",
        "torch.autograd.profiler_legacy",
        "torch.autograd.profiler_util",
        "torch.autograd.variable",
        "torch.backends",
        "torch.classes",
        "torch.cpu",
        "torch.cuda",
        "torch.distributed.elastic",
        "torch.distributed.launcher",
        "torch.distributed.nn",
        "torch.distributed.rpc",
        "torch.distributed.run",
        "torch.distributed.utils",
        "torch.distributions",
        "torch.func",
        "torch.futures",
        "torch.hub",
        "torch.masked",
        "torch.monitor",
        "torch.mps",
        "torch.mtia",
        "torch.multiprocessing",
        "torch.nested",
        "torch.nn.intrinsic",
        "torch.nn.qat",
        "torch.nn.quantizable",
        "torch.nn.quantized",
        "torch.ops",
        "torch.profiler",
        "torch.quantization",
        "torch.quasirandom",
        "torch.random",
        "torch.return_types",
        "torch.serialization",
        "torch.sparse",
        "torch.storage",
        "torch.types",
        "torch.utils",
        "torch.xpu",
    }
)
_KEPT_MODULES = frozenset(
    {
        "torch.cuda.amp",
        "torch.cuda.amp.autocast_mode",
        "torch.cuda.amp.grad_scaler",
        "torch.utils.checkpoint",
        "torch.utils.data",
        "torch.utils.data.dataloader",
        "torch.utils.data.dataset",
        "torch.utils.data.distributed",
        "torch.utils.data.sampler",
    }
)

# Questions, listings and set-up: they tell facts or build the model, and change nothing in a step.
_LEFT_OUT_PREFIXES = (
    "get_",
    "has_",
    "is_",
    "named_",
    "new_",
    "register_",
    "set_",
    "use_",
    "vmap",
)
# `Optimizer.step` calls these with lists of all tensors; it and the parameter groups say the same.
_FUNCTIONAL_OPTIMIZERS = frozenset(
    {
        "adadelta",
        "adagrad",
        "adam",
        "adamax",
        "adamw",
        "asgd",
        "nadam",
        "radam",
        "rmsprop",
        "rprop",
        "sgd",
    }
)
_LEFT_OUT_NAMES = _FUNCTIONAL_OPTIMIZERS | frozenset(
    {
        "add_module",
        "add_param_group",
        "apply",
        "are_deterministic_algorithms_enabled",
        "buffers",
        "children",
        "compile",
        "const_data_ptr",
        "cond",
        "data_ptr",
        "dim",
        "element_size",
        "extra_repr",
        "modules",
        "ndimension",
        "nelement",
        "numel",
        "parameters",
        "profile_hook_step",
        "reinforce",
        "share_memory",
        "share_memory_",
        "size",
        "storage",
        "storage_offset",
        "storage_type",
        "stride",
        "typename",
        "unflatten",
        "untyped_storage",
    }
)
# Not of the set-up: without it, each epoch has the data in the same order.
_ACTS = frozenset(("set_epoch",))
# It has dropout of its own, and programs call it where they would call a module otherwise.
TAKEN_BUILTINS = frozenset(("torch.nn.functional.scaled_dot_product_attention",))
# How every module is called: their own code is known to the compiler.
_CALLED_THROUGH = frozenset(("_call_impl", "_slow_forward", "_wrapped_call_impl"))
# Of the methods that Python calls; the rest are how a class behaves, not what a program does.
_SPECIAL = frozenset(("__init__", "__call__", "__enter__", "__exit__"))
# A pass over the data begins: only after the second one is it known whether batches come again.
_BEGINS_EPOCH = frozenset(("torch.utils.data.DataLoader.__iter__",))


@attrs.frozen(kw_only=True)
class Scope:
    """What is recorded of some packages, or of parts of them: by default what is public.

    Of torch, also of its public API, what says nothing about training is left out.
    """

    roots: tuple[str, ...] = (TORCH,)
    with_private: bool = False
    with_builtins: bool = False

    def has(self, module: str) -> bool:
        """Whether a module is one of the packages, or in one, and may be recorded at all."""
        return _is_below(module, self.roots) and not self.is_closed(module)

    def is_closed(self, module: str) -> bool:
        """Whether a module is closed to recording, whatever is asked for."""
        first = module.partition(".")[0]
        return first in _OWN or first in sys.stdlib_module_names or _is_below(module, _MACHINERY)

    def walks(self, module: str) -> bool:
        """Whether what a module offers is recorded."""
        if not self.has(module):
            return False
        return self.with_private or (is_public(module) and not _is_tooling(module))

    def takes_class(self, defined_in: str) -> bool:
        """Whether a class that a module offers is recorded, by the module that defines it."""
        return self.has(defined_in) and (self.with_private or not _is_tooling(defined_in))

    def takes(self, path: str) -> bool:
        """Whether calls of the function with this path are recorded."""
        name = path.rpartition(".")[2]
        if name.startswith("__") and name.endswith("__"):
            return name in _SPECIAL or path in _BEGINS_EPOCH
        if self.with_private:
            return name not in _CALLED_THROUGH
        if name.startswith("_"):
            return False
        if name in _ACTS or not _is_below(path, (TORCH,)):
            return True
        return not (name.startswith(_LEFT_OUT_PREFIXES) or name in _LEFT_OUT_NAMES)

    def takes_builtin(self, path: str) -> bool:
        """Whether a function with this path is recorded though it is a builtin."""
        return self.with_builtins or path in TAKEN_BUILTINS

    def takes_method(self, owner: str, name: str, *, of_manager: bool) -> bool:
        """Whether a method of the class with this path is recorded.

        What torch's context managers do is told with each call, as its context.
        """
        is_told = of_manager and name in _SPECIAL and _is_below(owner, (TORCH,))
        return self.takes(f"{owner}.{name}") and (self.with_private or not is_told)


def is_public(path: str) -> bool:
    """Whether no part of a path begins with an underscore."""
    return not any(part.startswith("_") for part in path.split("."))


def _is_tooling(module: str) -> bool:
    return module not in _KEPT_MODULES and _is_below(module, _LEFT_OUT_MODULES)


def _is_below(path: str, modules: Container[str]) -> bool:
    """Whether a path is one of some modules, or in one."""
    while path:
        if path in modules:
            return True
        path = path.rpartition(".")[0]
    return False
