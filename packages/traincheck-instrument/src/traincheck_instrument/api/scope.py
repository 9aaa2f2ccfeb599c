"""What full collection leaves out: not what training does, but what prepares or inspects it."""

from __future__ import annotations

# Compilers, exporters, device housekeeping and tooling: they don't compute a training step.
_LEFT_OUT_MODULES = frozenset(
    {
        "torch.accelerator",
        "torch.ao",
        "torch.autograd.forward_ad",
        "torch.autograd.function",
        "torch.autograd.functional",
        "torch.autograd.gradcheck",
        "torch.autograd.graph",
        "torch.autograd.profiler",
        "torch.autograd.profiler_legacy",
        "torch.autograd.profiler_util",
        "torch.autograd.variable",
        "torch.backends",
        "torch.classes",
        "torch.compiler",
        "torch.cpu",
        "torch.cuda",
        "torch.distributed.elastic",
        "torch.distributed.launcher",
        "torch.distributed.nn",
        "torch.distributed.rpc",
        "torch.distributed.run",
        "torch.distributed.utils",
        "torch.distributions",
        "torch.export",
        "torch.func",
        "torch.futures",
        "torch.fx",
        "torch.hub",
        "torch.jit",
        "torch.library",
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
        "torch.onnx",
        "torch.ops",
        "torch.overrides",
        "torch.package",
        "torch.profiler",
        "torch.quantization",
        "torch.quasirandom",
        "torch.random",
        "torch.return_types",
        "torch.serialization",
        "torch.sparse",
        "torch.storage",
        "torch.testing",
        "torch.types",
        "torch.utils",
        "torch.xpu",
    }
)
_KEPT_MODULES = frozenset(
    {
        "torch.cuda.amp",
        "torch.utils.checkpoint",
        "torch.utils.data",
        "torch.utils.data.dataloader",
        "torch.utils.data.distributed",
        "torch.utils.data.sampler",
    }
)

# Questions, listings and set-up: they tell facts or build the model, and change nothing in a step.
_LEFT_OUT_PREFIXES = (
    "_",
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
_LEFT_OUT_NAMES = frozenset(
    {
        "add_module",
        "add_param_group",
        "apply",
        "are_deterministic_algorithms_enabled",
        "buffers",
        "children",
        "compile",
        "cond",
        "extra_repr",
        "modules",
        "parameters",
        "reinforce",
        "share_memory",
        "share_memory_",
        "storage",
        "storage_type",
        "typename",
        "unflatten",
    }
)


def is_worth_walking(module: str) -> bool:
    """Whether functions of this module are part of training."""
    parts = module.split(".")
    if any(part.startswith("_") for part in parts):
        return False
    paths = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return module in _KEPT_MODULES or paths.isdisjoint(_LEFT_OUT_MODULES)


def is_worth_recording(path: str) -> bool:
    """Whether calls of the function with this public path say something about training."""
    name = path.rpartition(".")[2]
    return not name.startswith(_LEFT_OUT_PREFIXES) and name not in _LEFT_OUT_NAMES
