"""Reading modules from text."""

from __future__ import annotations

import re

from mlir import ir

from .passes.building import is_public

_ARRAY = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|\barray<\s*([^\s:>]*)')
_ELEMENTS = re.compile(r"(?:si|ui|[if]|bf|tf)\d\w*")

#: Attributes of the parameters that passes add to a kernel.
_ADDED = ("tile.descriptor", "tile.scratch", "tile.grid", "tile.queue")


def parse_module(text: str) -> ir.Module:
    """Parse a module in the current context. Raises `mlir.ir.MLIRError`, and ValueError for arrays whose elements are neither integers
    nor floats: MLIR's own parser aborts the process on them."""
    for match in _ARRAY.finditer(text):
        element = match[1]
        if element is not None and not _ELEMENTS.fullmatch(element):
            line = 1 + text.count("\n", 0, match.start())
            raise ValueError(f"line {line}: array<{element}>: the elements of an array attribute are integers or floats, such as i32")
    return ir.Module.parse(text)


def kernel_parameters(module: ir.Operation) -> list[str]:
    """The types of what the kernel of a module is launched with: its parameters but those that passes add."""
    for op in module.regions[0].blocks[0].operations:
        function = op.operation
        if function.name == "func.func" and is_public(function):
            types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
            facts = function.attributes["arg_attrs"] if "arg_attrs" in function.attributes else [()] * len(types)
            return [str(type_) for type_, known in zip(types, facts, strict=True) if not any(name in known for name in _ADDED)]
    return []
