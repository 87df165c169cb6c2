"""Matrices in registers, cut along their columns: a renaming of registers where a thread holds its columns of every part."""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.encoding import layout_of, with_layout
from tilewright.compiler.layouts import LinearLayout, shape_ops

from .building import Builder, defining, i32_array

_ORDER = (0, 2, 1)


def cut(build: Builder, value: ir.Value, count: int) -> list[ir.Value]:
    """Cut a matrix along its columns into `count` tensors, a power of two, in order (see `analysis.staging.halves`)."""
    if count == 1:
        return [value]
    rows, cols = value.type.shape
    split = shape_ops.reshape(layout_of(value.type), (rows, 2, cols // 2))
    last = shape_ops.trans(split, _ORDER)
    element = value.type.element_type
    value = build.value("tile.reshape", _tensor(element, split), [value])
    value = build.value("tile.trans", _tensor(element, last), [value], {"order": i32_array(_ORDER, build.loc.context)})
    both = build.op("tile.split", [_tensor(element, shape_ops.split(last))] * 2, [value]).results
    return [piece for part in both for piece in cut(build, part, count // 2)]


def origin(piece: ir.Value) -> tuple[ir.Value, int]:
    """Return the tensor that `cut` made a piece of, and the column at which that begins; of other values, themselves."""
    start = 0
    while (split := defining(piece)) is not None and split.name == "tile.split":
        trans = defining(split.operands[0])
        reshape = defining(trans.operands[0]) if trans is not None and trans.name == "tile.trans" else None
        if reshape is None or reshape.name != "tile.reshape" or tuple(ir.DenseI32ArrayAttr(trans.attributes["order"])) != _ORDER:
            break
        start += list(split.results).index(piece) * piece.type.shape[1]
        piece = reshape.operands[0]
    return piece, start


def _tensor(element: ir.Type, layout: LinearLayout) -> ir.Type:
    return with_layout(ir.RankedTensorType.get(layout.out_sizes, element), layout)
