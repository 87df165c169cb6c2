"""Pieces of a tile's columns, each made by itself of a piece of the accumulator.

What is stored is elementwise of the accumulator, and cut along its columns. Done piece by piece, the first one is under way while the next
are computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.analysis.layout_rules import is_elementwise
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.encoding import layout_of, with_layout

from .building import Builder, Values, defining
from .columns import cut, origin


@dataclass
class Pieces:
    """`count` pieces of what the operations `chain` make of `accumulator`."""

    accumulator: ir.Value
    chain: list[ir.Operation]
    count: int

    def cut(self, build: Builder) -> list[ir.Value]:
        """Return the pieces of the accumulator."""
        return cut(build, self.accumulator, self.count)

    def make(self, build: Builder, piece: ir.Value) -> ir.Value:
        """Do to a piece of the accumulator what is done to the whole of it."""
        values: Values = {self.accumulator: piece}
        for op in self.chain:
            for operand in op.operands:
                if operand not in values and isinstance(operand.type, ir.RankedTensorType):
                    values[operand] = _uniform(build, defining(operand), _like(piece, operand))
            result = build.clone(op, values).results[0]
            result.set_type(_like(piece, result))
        return values[self.chain[-1].results[0]]


def pieces_of(pieces: list[ir.Value], own: set[int]) -> Pieces | None:
    """Return how `pieces` are made by operations whose `tree.key` is among `own`: as the columns in order of what elementwise ones make of
    one tensor that comes from elsewhere, and of tensors of one number. None if they are made in another way."""
    whole, _ = origin(pieces[0])
    if [origin(piece) for piece in pieces] != [(whole, piece.type.shape[-1] * i) for i, piece in enumerate(pieces)]:
        return None
    chain: list[ir.Operation] = []
    sources: dict[ir.Value, None] = {}
    if not _find(whole, own, chain, sources) or len(sources) != 1 or not chain:
        return None
    (accumulator,) = sources
    return Pieces(accumulator, chain, len(pieces))


def _find(value: ir.Value, own: set[int], chain: list[ir.Operation], sources: dict[ir.Value, None]) -> bool:
    """Append the operations that make `value`, in order, and the tensors from elsewhere; return whether they are elementwise."""
    op = defining(value)
    if not isinstance(value.type, ir.RankedTensorType) or (op is not None and _is_uniform(op)):
        return True
    if op is None or key(op) not in own:
        sources[value] = None
        return True
    if not is_elementwise(op.name) or op.regions or len(op.results) != 1:
        return False
    if any(isinstance(v.type, ir.RankedTensorType) and layout_of(v.type) != layout_of(value.type) for v in op.operands):
        return False
    if op in chain:
        return True
    if not all(_find(operand, own, chain, sources) for operand in op.operands):
        return False
    chain.append(op)
    return True


def _is_uniform(op: ir.Operation) -> bool:
    """Whether all elements of the tensor that an operation makes are one number."""
    if op.name == "arith.constant":
        return ir.DenseElementsAttr(op.attributes["value"]).is_splat
    return op.name == "tile.splat"


def _uniform(build: Builder, op: ir.Operation, type_: ir.Type) -> ir.Value:
    """Make what such an operation makes, of another shape."""
    if op.name == "tile.splat":
        return build.value(op.name, type_, list(op.operands))
    number = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    return build.value(op.name, type_, [], {"value": ir.DenseElementsAttr.get_splat(type_, number)})


def _like(piece: ir.Value, value: ir.Value) -> ir.Type:
    return with_layout(ir.RankedTensorType.get(piece.type.shape, value.type.element_type), layout_of(piece.type))
