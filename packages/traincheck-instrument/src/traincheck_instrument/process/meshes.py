"""Remembers the device meshes that a program makes: torch keeps no list of them."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from torch.distributed.device_mesh import DeviceMesh

from traincheck_instrument.api.namespaces import InClass
from traincheck_instrument.api.replacements import Replacements
from traincheck_instrument.recorder.interruptions import is_interruption

if TYPE_CHECKING:
    from collections.abc import Iterator


class Meshes:
    """The meshes of this process. `install` and `uninstall` may be called twice."""

    def __init__(self) -> None:
        self._made: dict[int, weakref.ref[DeviceMesh]] = {}  # by id, those that are alive
        # Of dimensions. A program may cut parts of a mesh at each step.
        self.names: set[str] = set()
        self._replaced = Replacements()

    def install(self) -> None:
        """Remember each mesh that is made from now on."""
        if self._replaced:
            return
        place = InClass(DeviceMesh, "__init__")
        original, note = place.get(), self._note

        @functools.wraps(original)
        def __init__(mesh: DeviceMesh, *args: Any, **kwargs: Any) -> None:  # noqa: N807  it is one
            original(mesh, *args, **kwargs)
            note(mesh)

        self._replaced.put(place, __init__)

    def uninstall(self) -> None:
        """Remember no more."""
        self._replaced.put_back()

    def _note(self, mesh: DeviceMesh) -> None:
        key, made = id(mesh), self._made
        made[key] = weakref.ref(mesh, lambda _: made.pop(key, None))
        self.names.update(mesh.mesh_dim_names or ())

    def dimensions(self) -> Iterator[tuple[str, Any]]:
        """Yield the named dimensions of the meshes that this rank is in, with their groups."""
        for reference in list(self._made.values()):
            if (mesh := reference()) is None:
                continue
            for name in mesh.mesh_dim_names or ():
                try:
                    group = None if mesh.get_coordinate() is None else mesh.get_group(name)
                except Exception as error:  # a mesh may have no groups at all
                    if is_interruption(error):
                        raise
                    continue
                if group is not None:
                    yield name, group
