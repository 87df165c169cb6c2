"""When is a mask true everywhere: the scalar comparison that says so.

An integer tensor made of scalars, ranges and constants is, at each position, a sum of scalars plus a number that depends on the position
and lies in an interval known at compile time. Two such tensors compare alike at all positions if they do at the worst one. As everywhere
(`axis_info`), index arithmetic is taken not to overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

_SLT, _SLE, _SGT, _SGE = 2, 3, 4, 5
_SAME_VALUES = frozenset({"tile.expand_dims", "tile.broadcast", "tile.reshape", "tile.trans", "tilegpu.convert_layout"})
_MAX_TERMS = 8
#: Beyond this, sums of 32 bits might overflow.
_LIMIT = 1 << 30


@dataclass(frozen=True)
class Bounds:
    """A sum of `terms`, scalars with a factor each, plus something between `low` and `high`."""

    terms: tuple[tuple[ir.Value, int], ...]
    low: int
    high: int

    def scaled(self, factor: int) -> Bounds:
        low, high = sorted((self.low * factor, self.high * factor))
        return Bounds(tuple((v, f * factor) for v, f in self.terms), low, high)

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(self.terms + other.terms, self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Comparison:
    """`left` and `right`, without intervals any more, compared as arith.cmpi does with `predicate`."""

    predicate: int
    left: Bounds
    right: Bounds


def true_everywhere(mask: ir.Value) -> list[Comparison] | None:
    """Return the comparisons of scalars that together imply that all elements of a mask are true; None if it is not made of comparisons
    of bounded integers."""
    op = _op(mask)
    if op is None:
        return None
    if op.name in _SAME_VALUES:
        return true_everywhere(op.operands[0])
    if op.name == "arith.andi":
        both = [true_everywhere(v) for v in op.operands]
        return None if None in both else both[0] + both[1]
    if op.name != "arith.cmpi":
        return None
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    left, right = (bounds(v) for v in op.operands)
    if left is None or right is None:
        return None
    if predicate in (_SGT, _SGE):
        return [Comparison(predicate, Bounds(left.terms, left.low, left.low), Bounds(right.terms, right.high, right.high))]
    if predicate in (_SLT, _SLE):
        return [Comparison(predicate, Bounds(left.terms, left.high, left.high), Bounds(right.terms, right.low, right.low))]
    return None


def bounds(value: ir.Value) -> Bounds | None:
    """Return the bounds of an integer tensor, or None if that is made of more than scalars, ranges and constants, or of large ones."""
    found = _bounds(value)
    if found is None or len(found.terms) > _MAX_TERMS:
        return None
    numbers = (found.low, found.high, *(factor for _, factor in found.terms))
    return found if max(map(abs, numbers)) < _LIMIT else None


def _bounds(value: ir.Value) -> Bounds | None:
    if not isinstance(value.type, ir.RankedTensorType):
        return Bounds(((value, 1),), 0, 0)
    op = _op(value)
    if op is None:
        return None
    name = op.name
    if name == "arith.constant":
        attribute = op.attributes["value"]
        if not (isinstance(attribute, ir.DenseIntElementsAttr) and attribute.is_splat):
            return None
        return Bounds((), attribute[0], attribute[0])
    if name == "tile.range":
        start, end = (ir.IntegerAttr(op.attributes[key]).value for key in ("start", "end"))
        return Bounds((), start, end - 1)
    if name == "tile.splat":
        return Bounds(((op.operands[0], 1),), 0, 0)
    if name in _SAME_VALUES:
        return _bounds(op.operands[0])
    if name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = (_bounds(v) for v in op.operands)
    if left is None or right is None:
        return None
    if name == "arith.muli":
        constant, other = (left, right) if _is_constant(left) else (right, left)
        return other.scaled(constant.low) if _is_constant(constant) else None
    return left.plus(right.scaled(-1) if name == "arith.subi" else right)


def _is_constant(found: Bounds) -> bool:
    return not found.terms and found.low == found.high


def _op(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation
