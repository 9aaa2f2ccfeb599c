"""The source layer: reads a program, and puts the marks of steps and stages into it."""

from traincheck_instrument.source.own_files import OwnFiles
from traincheck_instrument.source.program import Program, read_program
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
    "read_program",
    "rewrite",
]
