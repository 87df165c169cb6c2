"""What nobody looks at: whether a part of a loaded tile reaches memory.

Kernels let the indices of the last tile wrap around, `(pid * B + arange) % M`, or replace them, `where(i < M, i, 0)`, only to stay inside
of the array: rows from M on are computed and never stored. Then it does not matter what is loaded for them.
"""

from __future__ import annotations

from mlir import ir

from .affine import Forms
from .polynomial import Polynomial

_ELEMENTWISE = ("arith.", "math.")
_ELEMENTWISE_OPS = frozenset({"tile.fp_to_fp", "tile.bitcast", "tile.clampf", "tile.sqrt_rn", "tile.div_rn"})


def is_unobserved(forms: Forms, value: ir.Value, axis: int, distance: Polynomial) -> bool:
    """Whether elements of a tensor whose index along `axis` plus `distance` is not negative reach no store, and change no others."""
    pending, seen = [(value, axis)], set()
    while pending:
        value, axis = pending.pop()
        if (value, axis) in seen:
            continue
        seen.add((value, axis))
        for use in value.uses:
            reached = _reached(forms, use.owner.operation, use.operand_number, axis, distance)
            if reached is None:
                return False
            pending += reached
    return True


def _reached(forms: Forms, op: ir.Operation, operand: int, axis: int, distance: Polynomial) -> list[tuple[ir.Value, int]] | None:
    """Return the values that an operand's elements become part of, at the same index along the axis given with each; None if their
    influence goes beyond that."""
    match op.name:
        case "tile.trans":
            return [(op.results[0], list(ir.DenseI32ArrayAttr(op.attributes["order"])).index(axis))]
        case "tile.dot":
            rank = op.results[0].type.rank
            contracted = {0: rank - 1, 1: rank - 2}.get(operand)
            return None if axis == contracted else [(op.results[0], axis)]
        case "scf.for" if operand >= 3:
            return [(op.regions[0].blocks[0].arguments[operand - 2], axis)]
        case "scf.yield" if op.parent.name == "scf.for":
            loop = op.parent.operation
            return [(loop.results[operand], axis), (loop.regions[0].blocks[0].arguments[1 + operand], axis)]
        case "tile.store":
            bounds = forms.bounds(op.operands[2]) if operand == 1 and len(op.operands) > 2 else None
            return [] if any(b.upper and b.dim == axis and forms.same(b.distance, distance) for b in bounds or ()) else None
    if op.name.startswith(_ELEMENTWISE) or op.name in _ELEMENTWISE_OPS:
        return [(result, axis) for result in op.results]
    return None
