"""How much shared memory an op needs for itself while it runs: what the allocation pass asks before it places anything.

A pure function of the op's types and attributes. Every op with a result above zero gets `tilegpu.offset` and is lowered with the
barriers that it needs inside; threads that still use that memory from an earlier op must be kept off by a barrier before it.
"""

from collections.abc import Callable
from math import prod

from mlir import ir

from tilewright.compiler.encoding import layout_of

from . import atomics, convert_layout, reduce, scan
from .shared_memory import element_bytes

ALIGNMENT = 16


def scratch_bytes(op: ir.Operation) -> int:
    """Return the bytes of scratch that the lowering of `op` uses, a multiple of 16; 0 for ops that use none."""
    need = _NEEDS.get(op.name)
    return 0 if need is None else -(-need(op) // ALIGNMENT) * ALIGNMENT


def _bits(type_: ir.Type) -> int:
    return 8 * element_bytes(type_.element_type if isinstance(type_, ir.RankedTensorType) else type_)


def _convert(op: ir.Operation) -> int:
    source, result = op.operands[0].type, op.results[0].type
    return convert_layout.scratch_bytes(layout_of(source), layout_of(result), _bits(source))


def _along_axis(family: Callable[..., int]) -> Callable[[ir.Operation], int]:
    def need(op: ir.Operation) -> int:
        axis = ir.IntegerAttr(op.attributes["axis"]).value
        return family(layout_of(op.operands[0].type), axis, [_bits(v.type) for v in op.operands])

    return need


def _atomic(op: ir.Operation) -> int:
    """Copies of an element in other warps learn the result through memory, if anyone asks for it."""
    if not atomics.is_used(op.results[0]):
        return 0
    result = op.results[0].type
    layout = layout_of(result) if isinstance(result, ir.RankedTensorType) else None
    return atomics.scratch_bytes(layout, _bits(result))


def _histogram(op: ir.Operation) -> int:
    return 4 * op.results[0].type.shape[0]


def _gather(op: ir.Operation) -> int:
    source = op.operands[0].type
    return prod(source.shape) * _bits(source) // 8


_NEEDS: dict[str, Callable[[ir.Operation], int]] = {
    "tilegpu.convert_layout": _convert,
    "tile.reduce": _along_axis(reduce.scratch_bytes),
    "tile.scan": _along_axis(scan.scratch_bytes),
    "tile.atomic_rmw": _atomic,
    "tile.atomic_cas": _atomic,
    "tile.atomic_load": _atomic,
    "tile.atomic_poll": _atomic,
    "tile.histogram": _histogram,
    "tile.gather": _gather,
}
