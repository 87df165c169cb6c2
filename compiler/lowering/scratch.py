"""How much shared memory an op needs for itself while it runs: what the allocation pass asks before it places anything.

A pure function of the op's types and attributes. Every op with a result above zero gets `tilegpu.offset` and is lowered with the
barriers that it needs inside; threads that still use that memory from an earlier op must be kept off by a barrier before it.
"""

from collections.abc import Callable
from math import prod

from mlir import ir

from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import LinearLayout

from . import atomics, convert_layout, reduce, tensor_map
from .shared_memory import element_bytes

ALIGNMENT = 16


def scratch_bytes(op: ir.Operation) -> int:
    """Return the bytes of scratch that the lowering of `op` uses, a multiple of 16; 0 for ops that use none."""
    need = _NEEDS.get(op.name)
    return 0 if need is None else -(-need(op) // ALIGNMENT) * ALIGNMENT


def scratch_alignment(op: ir.Operation) -> int:
    """Return the alignment in bytes of the scratch of an op."""
    return tensor_map.MAP_BYTES if op.name == "tile.make_descriptor" else ALIGNMENT


def _bits(type_: ir.Type) -> int:
    return 8 * element_bytes(type_.element_type if isinstance(type_, ir.RankedTensorType) else type_)


def _convert(op: ir.Operation) -> int:
    source, result = op.operands[0].type, op.results[0].type
    return convert_layout.scratch_bytes(layout_of(source), layout_of(result), _bits(source))


def _axis_arguments(op: ir.Operation) -> tuple[LinearLayout, int, list[int]]:
    return layout_of(op.operands[0].type), ir.IntegerAttr(op.attributes["axis"]).value, [_bits(v.type) for v in op.operands]


def _reduce(op: ir.Operation) -> int:
    return reduce.scratch_bytes(op, *_axis_arguments(op))


def _scan(op: ir.Operation) -> int:
    return reduce.ordered_scratch_bytes(*_axis_arguments(op))


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
    "tile.reduce": _reduce,
    "tile.scan": _scan,
    "tile.atomic_rmw": _atomic,
    "tile.atomic_cas": _atomic,
    "tile.atomic_load": _atomic,
    "tile.atomic_poll": _atomic,
    "tile.histogram": _histogram,
    "tile.gather": _gather,
    "tile.make_descriptor": tensor_map.scratch_bytes,
}
