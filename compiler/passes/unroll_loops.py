"""`tile-unroll-loops`: loops that ask for it are unrolled.

Before: `scf.for` with `tile.loop_unroll_factor` (i32).
After: no such attribute. A loop with factor f > 1 runs in steps of f iterations, written out one after the other; a second loop does the
iterations that are left over. The remainder is not pipelined.
"""

from __future__ import annotations

from mlir import ir

from .building import Builder, Values, collect, i32_attr, walk
from .registry import register

_FACTOR = "tile.loop_unroll_factor"


@register("tile-unroll-loops", only_for=("scf.for",))
def unroll_loops(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in reversed([op for op in collect(module, "scf.for") if _FACTOR in op.attributes]):
        factor = ir.IntegerAttr(op.attributes[_FACTOR]).value
        del op.attributes[_FACTOR]
        if factor > 1:
            _unroll(op, factor)


def _unroll(op: ir.Operation, factor: int) -> None:
    """Split a loop into one over whole groups of iterations and one over the rest; the original becomes the latter."""
    build = Builder.before(op)
    lower, upper, step, *inits = op.operands
    times = build.integer(step.type, factor)
    wide_step = build.binary("arith.muli", step, times)
    length = build.binary("arith.subi", upper, lower)
    # A loop that does not run at all has a negative or zero length; the group loop then does not run either.
    groups = build.binary("arith.divsi", length, wide_step)
    middle = build.binary("arith.addi", lower, build.binary("arith.muli", groups, wide_step))
    attributes = {name: op.attributes[name] for name in op.attributes}
    types = [v.type for v in inits]
    wide = build.op("scf.for", types, [lower, middle, wide_step, *inits], attributes, regions=1)
    block = wide.regions[0].blocks.append(lower.type, *types, arg_locs=[op.location] * (len(types) + 1))
    iv, *carried = block.arguments
    body = op.regions[0].blocks[0]
    inner = Builder(ir.InsertionPoint(block), op.location)
    ops = [o.operation for o in body.operations]
    current = list(carried)
    for repetition in range(factor):
        if repetition:
            iv = inner.binary("arith.addi", iv, step)
        values: Values = {body.arguments[0]: iv, **dict(zip(list(body.arguments)[1:], current, strict=True))}
        for o in ops[:-1]:
            _clone_deep(inner, o, values)
        current = [values.get(v, v) for v in ops[-1].operands]
    inner.op("scf.yield", [], current)
    op.operands[0] = middle
    for i, result in enumerate(wide.results):
        op.operands[3 + i] = result
    op.attributes["tile.num_stages"] = i32_attr(1, op.context)


def _clone_deep(build: Builder, op: ir.Operation, values: Values) -> None:
    """Copy an operation; operands inside its regions are replaced as well."""
    new = build.clone(op, values)
    if new.regions:
        for inner in walk(new):
            for i, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[i] = values[operand]
