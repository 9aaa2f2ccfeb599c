"""What full collection leaves out: not what training does, but what prepares or inspects it."""

from __future__ import annotations

# Compilers, exporters, device housekeeping and tooling: they don't compute a training step.
_LEFT_OUT_MODULES = frozenset(
    [
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
        "torch.TypedStorage",
        "torch.UntypedStorage",
        "torch.masked",
        "torch.nested",
        "torch.nn.intrinsic",
        "torch.nn.qat",
        "torch.nn.quantizable",
        "torch.nn.quantized",
        "torch.monitor",
        "torch.quasirandom",
        "torch.utils.data.datapipes",
        "torch.utils.data.graph",
        "torch.utils.data.graph_settings",
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
        "torch.mps",
        "torch.mtia",
        "torch.multiprocessing",
        "torch.onnx",
        "torch.ops",
        "torch.overrides",
        "torch.package",
        "torch.profiler",
        "torch.quantization",
        "torch.random",
        "torch.return_types",
        "torch.serialization",
        "torch.sparse",
        "torch.storage",
        "torch.testing",
        "torch.torch_version",
        "torch.types",
        "torch.utils",
        "torch.version",
        "torch.xpu",
    ]
)
_KEPT_MODULES = frozenset(
    [
        "torch.utils.data",
        "torch.utils.data.dataloader",
        "torch.utils.data.distributed",
        "torch.utils.data.sampler",
        "torch.utils.checkpoint",
        "torch.cuda.amp",
    ]
)

# Questions, listings and set-up: they tell facts or build the model, and change nothing in a step.
_LEFT_OUT_PREFIXES = [
    "_",
    "add_",
    "can_",
    "get_",
    "has_",
    "is_",
    "named_",
    "new_",
    "print_",
    "register_",
    "result_type",
    "set_",
    "torch_",
    "use_",
    "vmap",
    "xpu_",
]
_LEFT_OUT_NAMES = frozenset(
    [
        "apply",
        "are_deterministic_algorithms_enabled",
        "buffers",
        "children",
        "compile",
        "cond",
        "configure_ddp",
        "extra_repr",
        "finfo",
        "iinfo",
        "modules",
        "parameters",
        "typename",
        "while_loop",
        "share_memory",
        "align_as",
        "align_to",
        "refine_names",
        "rename",
        "unflatten",
        "reinforce",
        "storage",
        "storage_type",
        "share_memory_",
        "state_dict_hook",
        "stack_trace",
    ]
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
    return not name.startswith(tuple(_LEFT_OUT_PREFIXES)) and name not in _LEFT_OUT_NAMES
