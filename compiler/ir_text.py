"""Reading modules from text."""

from __future__ import annotations

import re

from mlir import ir

_ARRAY = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|\barray<\s*([^\s:>]*)')
_ELEMENTS = re.compile(r"(?:si|ui|[if]|bf|tf)\d\w*")


def parse_module(text: str) -> ir.Module:
    """Parse a module in the current context. Raises `mlir.ir.MLIRError`, and ValueError for arrays whose elements are neither integers
    nor floats: MLIR's own parser aborts the process on them."""
    for match in _ARRAY.finditer(text):
        element = match[1]
        if element is not None and not _ELEMENTS.fullmatch(element):
            line = 1 + text.count("\n", 0, match.start())
            raise ValueError(f"line {line}: array<{element}>: the elements of an array attribute are integers or floats, such as i32")
    return ir.Module.parse(text)
