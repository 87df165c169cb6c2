"""How layouts pass through operations that only move or combine elements: from operands to the result, and back.

`operand_layout` answers which layout a source must have for the result to come out in a given one without moving data; `result_layout`
the converse. Elementwise operations are the default: every tensor has the same layout.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.layouts import (
    LinearLayout,
    broadcast_source,
    concatenate,
    expand_dims,
    expand_source,
    inverse_permutation,
    join,
    reshape,
    slice_dim,
    trans,
)

from .tree import Node

#: Dialects whose operations are elementwise over tensors of one shape, and the operations of ours that are.
_ELEMENTWISE_DIALECTS = ("arith.", "math.")
_ELEMENTWISE_OPS = frozenset(
    {
        "tile.addptr",
        "tile.bitcast",
        "tile.clampf",
        "tile.div_rn",
        "tile.extern_call",
        "tile.fp_to_fp",
        "tile.inline_asm",
        "tile.int_to_ptr",
        "tile.map_elementwise",
        "tile.mulhi",
        "tile.ptr_to_int",
        "tile.sqrt_rn",
    }
)
#: Elementwise operations that may have effects or a region, so they are computed once, in one layout.
_ONCE = frozenset({"tile.extern_call", "tile.inline_asm", "tile.map_elementwise"})
#: Operations without tensor operands that can be made in any layout.
_SOURCES = frozenset({"tile.range", "tile.splat", "arith.constant"})
#: Operations that pass a demand for a layout on to their source, whether that has a home or not.
_TRANSPARENT = frozenset({"tile.expand_dims", "tile.broadcast"})
#: Operations that do so only for a source that can be made in any layout itself.
_SHAPE_OPS = frozenset({"tile.trans", "tile.reshape"})


def is_elementwise(name: str) -> bool:
    """Whether operations of this name compute each element from the elements at the same position."""
    return name.startswith(_ELEMENTWISE_DIALECTS) or name in _ELEMENTWISE_OPS


def is_source(name: str) -> bool:
    """Whether the result is made of scalars alone."""
    return name in _SOURCES


def keeps_elements(name: str) -> bool:
    """Whether the result of an operation of this name has the elements of its one source, each once, in another shape."""
    return name in _SHAPE_OPS or name == "tile.expand_dims"


def is_transparent(name: str) -> bool:
    """Whether the result is best made anew from its source for every layout that is wanted."""
    return name in _TRANSPARENT


def is_remakeable(name: str) -> bool:
    """Whether the operation may be repeated in another layout if its sources can."""
    return name in _SHAPE_OPS or (is_elementwise(name) and name not in _ONCE)


def integer(op: ir.Operation, name: str) -> int:
    """Return the value of an integer attribute."""
    return ir.IntegerAttr(op.attributes[name]).value


def order_of(op: ir.Operation) -> tuple[int, ...]:
    """Return the permutation of a `tile.trans`."""
    return tuple(ir.DenseI32ArrayAttr(op.attributes["order"]))


def operand_layout(node: Node, shape: tuple[int, ...], result: LinearLayout) -> LinearLayout:
    """Return the layout that a tensor operand of `shape` must have for the result to have the layout `result`."""
    match node.name:
        case "tile.expand_dims":
            return expand_source(result, integer(node.op, "axis"))
        case "tile.broadcast":
            return broadcast_source(result, shape)
        case "tile.trans":
            return trans(result, inverse_permutation(order_of(node.op)))
        case "tile.reshape":
            return reshape(result, shape)
        case _:
            return result


def result_layout(node: Node, shape: tuple[int, ...], operand: LinearLayout) -> LinearLayout:
    """Return the layout of a result of `shape` if the tensor operands have the layout `operand`."""
    match node.name:
        case "tile.trans":
            return trans(operand, order_of(node.op))
        case "tile.reshape":
            return reshape(operand, shape)
        case "tile.expand_dims":
            return expand_dims(operand, integer(node.op, "axis"))
        case "tile.join":
            return join(operand)
        case "tile.cat":
            return concatenate(operand, integer(node.op, "dim"))
        case "tile.reduce":
            return slice_dim(operand, integer(node.op, "axis"))
        case _:
            return operand
