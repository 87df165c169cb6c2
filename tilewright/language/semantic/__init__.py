"""Meaning of the language, one family of operations a file, over the `Builder` protocol."""

from .promotion import IncompatibleTypeErrorImpl
from .session import Semantic

__all__ = ["IncompatibleTypeErrorImpl", "Semantic"]
