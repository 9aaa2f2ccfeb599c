"""The source layer: reads a program, and puts the marks of steps and stages into it."""

from traincheck_instrument.source.own_files import OwnFiles
from traincheck_instrument.source.program import Program, folder_of_imports, read_program
from traincheck_instrument.source.rewriting import (
    Findings,
    FoundLoop,
    FoundName,
    Rewritten,
    rewrite,
)
from traincheck_instrument.source.tracking import BoundNames

__all__ = [
    "BoundNames",
    "Findings",
    "FoundLoop",
    "FoundName",
    "OwnFiles",
    "Program",
    "Rewritten",
    "folder_of_imports",
    "read_program",
    "rewrite",
]
