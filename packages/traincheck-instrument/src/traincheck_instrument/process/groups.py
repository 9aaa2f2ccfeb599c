"""The rank of this process in a distributed job, and the groups of ranks that it belongs to.

Read from torch.distributed and, where the program imported them, from Megatron and DeepSpeed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, TypeAlias

import attrs
from torch import distributed

from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.recorder.interruptions import is_interruption

Ranks: TypeAlias = tuple[int, ...]

WORLD = "world"
_NAMES = {  # of kinds of parallelism, however a mesh or a library calls them
    "cp": "context_parallel",
    "dp": "data_parallel",
    "ep": "expert_parallel",
    "expert_model_parallel": "expert_parallel",
    "pipeline_model_parallel": "pipeline_parallel",
    "pp": "pipeline_parallel",
    "sp": "sequence_parallel",
    "tensor_model_parallel": "tensor_parallel",
    "tp": "tensor_parallel",
}
_NO_DESCRIPTION = ("", "undefined", "default_pg", "mesh_default")
_OF_MESH = "mesh_"  # how torch describes the group of a mesh's dimension

_MEGATRON = "megatron.core.parallel_state"
_DEEPSPEED = "deepspeed.utils.groups"
_GETTERS: Mapping[str, Mapping[str, str]] = {
    _MEGATRON: {
        "data_parallel": "get_data_parallel_group",
        "tensor_parallel": "get_tensor_model_parallel_group",
        "pipeline_parallel": "get_pipeline_model_parallel_group",
        "context_parallel": "get_context_parallel_group",
        "expert_parallel": "get_expert_model_parallel_group",
    },
    _DEEPSPEED: {
        "data_parallel": "get_data_parallel_group",
        "tensor_parallel": "get_tensor_model_parallel_group",
        "sequence_parallel": "_get_sequence_parallel_group",
        "expert_parallel": "_get_max_expert_parallel_group",
    },
}


@attrs.frozen(kw_only=True)
class Place:
    """Where this process stands among the ranks of a job."""

    rank: int
    world_size: int
    groups: Mapping[str, Ranks]  # each that this rank belongs to


def fingerprint() -> tuple[object, ...]:
    """Return what differs once there are other groups; cheap enough to be asked at each step."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ()
    libraries = [name in sys.modules for name in _GETTERS]
    return id(distributed.group.WORLD), len(_members()), *libraries


def read_place(named: Iterable[tuple[str, Any]]) -> Place:
    """Read where this process stands in the job that torch.distributed knows of.

    Args:
        named: Groups of torch whose names are known, as those of a mesh's dimensions.
    """
    rank, size = distributed.get_rank(), distributed.get_world_size()
    groups = {WORLD: tuple(range(size))}
    unnamed = []
    for group, ranks in _members().items():
        description = getattr(group, "group_desc", "")
        if rank not in ranks:
            continue
        if description in _NO_DESCRIPTION:
            unnamed.append(tuple(ranks))
        else:
            groups[_name(description)] = tuple(ranks)
    for name, group in (*named, *_of_libraries()):
        groups[_name(name)] = tuple(distributed.get_process_group_ranks(group))
    groups.update(_numbered(unnamed, groups.values()))
    return Place(rank=rank, world_size=size, groups=groups)


def _members() -> Mapping[Any, Mapping[int, int]]:
    """Return the ranks of each group of this process; nothing public lists the groups."""
    world = getattr(distributed.distributed_c10d, "_world", None)
    members: Mapping[Any, Mapping[int, int]] = getattr(world, "pg_group_ranks", {})
    return members


def _name(given: str) -> str:
    """Return the name of a group, of a description such as DATA_PARALLEL_GROUP or mesh_dp."""
    name = start_of_text(given).lower().removeprefix(_OF_MESH).removesuffix("_group")
    return _NAMES.get(name, name)


def _numbered(unnamed: Iterable[Ranks], known: Iterable[Ranks]) -> dict[str, Ranks]:
    """Name groups that nobody described by their order, the same on ranks that make the same."""
    others = [ranks for ranks in dict.fromkeys(unnamed) if len(ranks) > 1 and ranks not in known]
    return {f"group_{number}": ranks for number, ranks in enumerate(others)}


def _of_libraries() -> Iterator[tuple[str, Any]]:
    for library, getters in _GETTERS.items():
        module = sys.modules.get(library)
        if not isinstance(module, ModuleType):
            continue
        for name, getter in getters.items():
            group = _ask(vars(module).get(getter))
            if group is None and library == _DEEPSPEED and name == "data_parallel":
                group = _ask_deepspeed(module)
            if group is not None:
                yield name, group


def _ask(getter: Callable[[], Any] | None) -> Any:
    """Return the group that a library tells; None if it has none of this kind."""
    try:
        group = None if getter is None else getter()
        distributed.get_process_group_ranks(group)
    except Exception as error:  # so the library says that there is none
        if is_interruption(error):
            raise
        return None
    return group


def _ask_deepspeed(module: ModuleType) -> Any:
    """Return DeepSpeed's data parallel group, unless asking for it would make one."""
    known = vars(module)
    if known.get("mpu") is None and known.get("mesh_device") is None:
        return None
    return _ask(known.get("_get_data_parallel_group"))
