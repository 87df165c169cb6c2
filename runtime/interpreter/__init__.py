"""The interpreter: kernels run as the Python they are, one program after another, with every `tl` operation carried out by NumPy."""

from .function import InterpretedFunction

__all__ = ["InterpretedFunction"]
