"""`tile-scalarize-pointers`: pointer tensors that a loop advances become a scalar pointer that it advances.

Before: `scf.for` carries a tensor of pointers and adds the same amount to all of them in every iteration.
After: it carries the scalar base; inside, the tensor is the base plus offsets that do not change in the loop. Per iteration that is one
scalar addition, and a thread keeps 32-bit offsets instead of 64-bit pointers. Where the base of the initial pointers is not plain to see,
the loop carries the distance from them.

The offsets stay separate terms, added to the base one after the other as in the source (their sum might overflow 32 bits); those that are
contiguous in memory come first, since a thread has the fewest different values of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.analysis.loop_slice import Loop
from tilewright.dialects import tile

from .building import Builder, collect, defining, tensor_type
from .registry import register


@register("tile-scalarize-pointers", only_for=("scf.for",))
def scalarize_pointers(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in collect(module, "scf.for"):
        loop = Loop(op)
        advances = {i: a for i in range(len(loop.args)) if (a := _advance(loop, i)) is not None}
        if advances:
            _rewrite(loop, advances)


@dataclass
class _Advance:
    """The operations of a loop's body that advance one carried tensor, first to last, and the scalars or constants that they add."""

    steps: list[ir.Operation]
    amounts: list[ir.Value | int]


def _advance(loop: Loop, index: int) -> _Advance | None:
    """Return how the loop advances a carried tensor of pointers, or None if it does so by different amounts, or not at all."""
    type_ = loop.args[index].type
    if not isinstance(type_, ir.RankedTensorType) or not tile.is_ptr(type_.element_type):
        return None
    out = _Advance([], [])
    value = loop.yields[index]
    while value != loop.args[index]:
        position = loop.definition(value)
        if position is None or loop.names[position] != "tile.addptr":
            return None
        op = loop.ops[position]
        amount = _uniform(op.operands[1])
        if amount is None:
            return None
        out.steps.insert(0, op)
        out.amounts.insert(0, amount)
        value = op.operands[0]
    return out if out.steps else None


def _uniform(offset: ir.Value) -> ir.Value | int | None:
    """Return the scalar or number that all elements of an integer tensor equal, or None if that is not plain to see."""
    op = defining(offset)
    if op is None:
        return None
    if op.name == "tile.splat":
        return op.operands[0]
    if op.name == "tile.broadcast":
        return _uniform(op.operands[0])
    if op.name == "arith.constant" and op.attributes["value"].is_splat:
        return ir.IntegerAttr(op.attributes["value"].get_splat_value()).value
    return None


@dataclass
class _Carried:
    """What the loop carries for one tensor: a scalar, first `init`; the tensor is `start` (None: the scalar itself is the base) plus
    `terms`."""

    init: ir.Value
    start: ir.Value | None
    terms: list[ir.Value]


def _decompose(value: ir.Value, build: Builder) -> _Carried:
    """Split initial pointers into a scalar base and offsets of their shape."""
    terms: list[ir.Value] = []
    shapes: list[ir.Type] = []  # the broadcasts passed on the way, outermost first
    start, current = value, value
    while True:
        op = defining(current)
        if op is None or op.name not in ("tile.addptr", "tile.broadcast", "tile.splat"):
            zero = build.integer(ir.IntegerType.get_signless(64, value.context), 0)
            return _Carried(zero, start, [])
        if op.name == "tile.splat":
            return _Carried(op.operands[0], None, sorted(terms, key=_is_strided))
        if op.name == "tile.broadcast":
            shapes.append(current.type)
        else:
            term = op.operands[1]
            for shape in reversed(shapes):
                term = build.value("tile.broadcast", tensor_type(shape, term.type.element_type), [term])
            terms.insert(0, term)
        current = op.operands[0]


def _is_strided(term: ir.Value) -> bool:
    """Whether an offset looks multiplied by a stride, so that it is not contiguous."""
    op = defining(term)
    while op is not None and op.name in ("tile.broadcast", "tile.expand_dims", "arith.extsi"):
        op = defining(op.operands[0])
    return op is not None and op.name == "arith.muli" and all(_uniform(v) != 1 for v in op.operands)


def _pointers(carried: _Carried, scalar: ir.Value, type_: ir.Type, build: Builder) -> ir.Value:
    """Make the tensor of pointers that the carried scalar stands for."""
    if carried.start is not None:
        return build.value("tile.addptr", type_, [carried.start, build.splat(scalar, type_)])
    value = build.splat(scalar, type_)
    for term in carried.terms:
        value = build.value("tile.addptr", type_, [value, term])
    return value


def _rewrite(loop: Loop, advances: dict[int, _Advance]) -> None:
    """Move the body to a new loop that carries scalars for the tensors in `advances`."""
    before = Builder.before(loop.op)
    carried = {i: _decompose(loop.inits[i], before) for i in advances}
    inits = [carried[i].init if i in carried else v for i, v in enumerate(loop.inits)]
    types = [v.type for v in inits]
    attributes = {name: loop.op.attributes[name] for name in loop.op.attributes}
    new = before.op("scf.for", types, [loop.lower, loop.upper, loop.step, *inits], attributes, regions=1)
    block = new.regions[0].blocks.append(loop.iv.type, *types, arg_locs=[loop.op.location] * (len(types) + 1))
    iv, *args = block.arguments
    build = Builder(ir.InsertionPoint(block), loop.op.location)
    replacements = [iv]
    for i, arg in enumerate(args):
        replacements.append(_pointers(carried[i], arg, loop.args[i].type, build) if i in carried else arg)
    for op in loop.ops[:-1]:
        block.append(op)
    yields = [_next(args[i], advances[i], build) if i in advances else v for i, v in enumerate(loop.yields)]
    build.op("scf.yield", [], yields)
    for old, replacement in zip([loop.iv, *loop.args], replacements, strict=True):
        old.replace_all_uses_with(replacement)
    after = Builder.after(new)
    for i, result in enumerate(loop.op.results):
        if any(True for _ in result.uses):
            value = new.results[i]
            result.replace_all_uses_with(_pointers(carried[i], value, result.type, after) if i in carried else value)
    loop.op.erase()
    for advance in advances.values():
        for op in reversed(advance.steps):
            if not any(True for _ in op.results[0].uses):
                op.erase()


def _next(scalar: ir.Value, advance: _Advance, build: Builder) -> ir.Value:
    """Advance the carried scalar: a pointer, or a distance in elements (i64)."""
    for amount in advance.amounts:
        if tile.is_ptr(scalar.type):
            if isinstance(amount, int):
                amount = build.integer(ir.IntegerType.get_signless(64, scalar.context), amount)
            scalar = build.value("tile.addptr", scalar.type, [scalar, amount])
            continue
        if isinstance(amount, int):
            amount = build.integer(scalar.type, amount)
        elif amount.type != scalar.type:
            amount = build.value("arith.extsi", scalar.type, [amount])
        scalar = build.binary("arith.addi", scalar, amount)
    return scalar
