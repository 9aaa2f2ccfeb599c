"""The contexts that are active at a call: what differs from the default.

Modes of torch are read as they are in the thread that asks. What has no state that can be read,
such as `no_sync`, is known from having been entered.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from traincheck_instrument.contexts.entered import Entered
from traincheck_instrument.encode.scalars import start_of_text
from traincheck_instrument.recorder.modes import without_modes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_instrument.encode import Encoder
    from traincheck_instrument.encode.scalars import Json

    _Autocast = tuple[str, torch.dtype, bool]
    _Modes = tuple[bool, bool, bool, _Autocast | None]

USER = "user"  # what the program tells about itself
_OF_TORCH = frozenset(("grad_mode", "inference_mode", "anomaly_mode", "autocast"))
_NOTHING: Mapping[str, Json] = MappingProxyType({})

# Read at each recorded call: together a few tenths of a microsecond.
_is_grad_enabled = torch.is_grad_enabled
_is_inference_mode = torch.is_inference_mode_enabled
_is_anomaly_mode = torch.is_anomaly_enabled
# The public question is about one device type, and there are ten.
_is_any_autocast = torch._C._is_any_autocast_enabled  # noqa: SLF001


class Contexts:
    """Tells the active contexts, by name; those alone whose first part of the name is `wanted`."""

    def __init__(self, encode: Encoder, wanted: frozenset[str] | None) -> None:
        self.encode = encode
        self._wanted = wanted  # None: all
        self._reads_modes = wanted is None or not wanted.isdisjoint(_OF_TORCH)
        self._of_modes: dict[_Modes, Mapping[str, Json]] = {}
        self._of_program: Mapping[str, Json] = _NOTHING
        self._device_types: tuple[str, ...] | None = None  # None: nobody asked yet
        self.entered = Entered()

    def wants(self, name: str) -> bool:
        """Whether a context of this name is told."""
        return self._wanted is None or name.partition(".")[0] in self._wanted

    def active(self) -> Mapping[str, Json]:
        """Return the contexts of this thread that are not as by default; not to be changed."""
        contexts = _NOTHING
        if self._reads_modes and (
            not _is_grad_enabled()
            or _is_any_autocast()
            or _is_inference_mode()
            or _is_anomaly_mode()
        ):
            contexts = self._modes()
        if self._of_program:
            contexts = {**contexts, **self._of_program}
        if self.entered.is_used and (entered := self.entered.active()):
            contexts = {**contexts, **entered}
        return contexts

    def annotate(self, values: Mapping[str, Any]) -> dict[str, Json]:
        """Take what the program says of itself, None: no longer; return what it said before."""
        with without_modes():
            told = {f"{USER}.{start_of_text(key)}": self.encode(of) for key, of in values.items()}
        before = {name: self._of_program.get(name) for name in told}
        if self.wants(USER):
            self.restore(told)
        return before

    def restore(self, told: Mapping[str, Json]) -> None:
        """Take what the program says of itself, as `annotate` returns it."""
        known = {**self._of_program, **told}
        self._of_program = {name: value for name, value in known.items() if value is not None}

    def _modes(self) -> Mapping[str, Json]:
        autocast = self._autocast() if _is_any_autocast() else None
        modes = _is_grad_enabled(), _is_inference_mode(), _is_anomaly_mode(), autocast
        known = self._of_modes.get(modes)
        if known is None:
            known = self._of_modes[modes] = self._describe(*modes)
        return known

    def _describe(
        self,
        is_grad_enabled: bool,  # noqa: FBT001  the modes in their order
        is_inference: bool,  # noqa: FBT001  as above
        is_anomaly: bool,  # noqa: FBT001  as above
        autocast: _Autocast | None,
    ) -> Mapping[str, Json]:
        contexts: dict[str, Json] = {}
        if not is_grad_enabled:
            contexts["grad_mode"] = False
        if is_inference:
            contexts["inference_mode"] = True
        if is_anomaly:
            contexts["anomaly_mode"] = True
        if autocast is not None:
            device_type, dtype, caches = autocast
            contexts["autocast.device_type"] = device_type
            contexts["autocast.dtype"] = self.encode(dtype)
            if not caches:
                contexts["autocast.cache_enabled"] = False
        return {name: value for name, value in contexts.items() if self.wants(name)}

    def _autocast(self) -> _Autocast | None:
        """Return what autocast does; if it is on for several devices, for the accelerator."""
        if self._device_types is None:
            self._device_types = _device_types()
        for device_type in self._device_types:
            if torch.is_autocast_enabled(device_type):
                dtype = torch.get_autocast_dtype(device_type)
                return device_type, dtype, torch.is_autocast_cache_enabled()
        return None


def _device_types() -> tuple[str, ...]:
    """Return all device types that autocast knows, first those that this machine may have."""
    accelerator = torch.accelerator.current_accelerator()
    usual = ("cpu",) if accelerator is None else (accelerator.type, "cpu")
    # Nothing public lists them.
    known = torch._C._autocast_supported_devices()  # noqa: SLF001
    return tuple(dict.fromkeys((*usual, *known)))
