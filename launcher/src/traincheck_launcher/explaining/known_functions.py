"""The functions of modules, as far as they are known without running the user's code."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from typing import TYPE_CHECKING

import attrs

from traincheck_instrument.api.scope import MAIN
from traincheck_launcher.preparing.modules import ModuleFinder
from traincheck_trace_schema.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traincheck_launcher.options import CollectOptions


@attrs.frozen
class KnownFunctions:
    """Names of functions, and which modules' are not known and why."""

    names: tuple[str, ...]
    problems: tuple[str, ...]

    def by_module(self) -> list[tuple[int, str]]:
        """Return how many functions each module has, the largest first."""
        modules = Counter(map(_module_of, self.names))
        return [(count, module) for module, count in modules.most_common()]


def known_functions(options: CollectOptions, modules: Sequence[str]) -> KnownFunctions:
    """Import modules of installed packages, and return what would be wrapped of them."""
    finder = ModuleFinder(options.import_folder)
    problems = list(_import_all(modules, finder))
    # These import torch.
    from traincheck_instrument.api.callables import why_not  # noqa: PLC0415
    from traincheck_instrument.api.catalogue import Catalogue  # noqa: PLC0415
    from traincheck_instrument.api.choice import Choice  # noqa: PLC0415

    choice = Choice(
        plan=Plan(id="full", functions=None, variables=()),
        modules=tuple(modules),
        with_private=options.with_private,
        with_builtins=options.with_descriptors,
    )
    names = {
        function.name
        for function in Catalogue(choice.scope).read(sys.modules)
        if choice.spec(function) is not None and why_not(function.original) is None
    }
    return KnownFunctions(tuple(sorted(names)), tuple(problems))


def _import_all(modules: Sequence[str], finder: ModuleFinder) -> Iterator[str]:
    """Import modules; say of those that are not why."""
    for module in modules:
        if module == MAIN:
            yield "of the script itself only methods that override public ones are recorded"
            continue
        if not finder.is_installed(module):
            yield f"what {module} has is not listed: only the program imports your modules"
            continue
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001  a package may fail in any way
            yield f"{module} can't be imported: {type(error).__name__}: {error}"


def _module_of(function: str) -> str:
    """Return the module in which a function, or the class of a method, is found."""
    while function and function not in sys.modules:
        function = function.rpartition(".")[0]
    return function
