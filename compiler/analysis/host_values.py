"""Which scalars of a kernel the host can compute before a launch, as Python expressions over the kernel's arguments.

An expression names argument number n `a<n>` and calls `wrap(value, bits)` where the kernel's arithmetic wraps around, `divide` and
`remainder` for division toward zero; integers are signed. `tilewright.runtime.tensor_maps` evaluates it.
"""

from __future__ import annotations

from mlir import ir

from tilewright.dialects import tile

from .axis_info import element_bytes

#: What expressions may call.
FUNCTIONS = ("wrap", "divide", "remainder", "max", "min")

_WRAPPING = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}
_EXACT = {
    "arith.andi": "({0} & {1})",
    "arith.divsi": "divide({0}, {1})",
    "arith.extsi": "{0}",
    "arith.maxsi": "max({0}, {1})",
    "arith.minsi": "min({0}, {1})",
    "arith.ori": "({0} | {1})",
    "arith.remsi": "remainder({0}, {1})",
    "arith.select": "({1} if {0} else {2})",
    "tile.bitcast": "{0}",
}
# Predicates 0 to 5 of arith.cmpi; the unsigned ones that follow are left to the device.
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_MAX_LENGTH = 400


def host_expression(value: ir.Value) -> str | None:
    """Return the expression of a scalar, or None if it depends on more than integer and pointer arguments and constants."""
    text = _expression(value)
    return text if text is not None and len(text) <= _MAX_LENGTH else None


def _expression(value: ir.Value) -> str | None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        is_argument = owner.owner.operation.name == "func.func"
        return f"a{value.arg_number}" if is_argument and (tile.is_ptr(value.type) or isinstance(value.type, ir.IntegerType)) else None
    op = owner.operation
    name = op.name
    if name == "arith.constant":
        attribute = op.attributes["value"]
        return str(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None
    if name not in _WRAPPING and name not in _EXACT and name not in ("arith.cmpi", "tile.addptr", "arith.trunci"):
        return None
    parts = [_expression(v) for v in op.operands]
    if any(part is None or len(part) > _MAX_LENGTH for part in parts):
        return None
    if name in _WRAPPING:
        return f"wrap({parts[0]} {_WRAPPING[name]} {parts[1]}, {value.type.width})"
    if name == "arith.trunci":
        return f"wrap({parts[0]}, {value.type.width})"
    if name == "tile.addptr":
        return f"({parts[0]} + {element_bytes(tile.pointee(value.type))} * {parts[1]})"
    if name == "arith.cmpi":
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        return f"({parts[0]} {_COMPARISONS[predicate]} {parts[1]})" if predicate < len(_COMPARISONS) else None
    return _EXACT[name].format(*parts)
