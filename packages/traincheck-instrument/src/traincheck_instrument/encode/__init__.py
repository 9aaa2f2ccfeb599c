"""Turns values of a training program into what a trace may hold."""

from traincheck_instrument.encode.encoder import Encoder
from traincheck_instrument.encode.scalars import Json
from traincheck_instrument.encode.text import TextEncoder

__all__ = ["Encoder", "Json", "TextEncoder"]
