"""Single elements of tensor values, taken from the operands of cheap ops rather than from wide vectors of results.

An access needs one mask bit and one address for each group of elements. Taking them out of `vector<64xi1>` makes LLVM compute, pack and
unpack all 64; the scalar form costs one instruction for each group.
"""

from mlir import ir

from . import vectors
from .context import LoweringContext


def element(ctx: LoweringContext, old: ir.Value, register: int) -> ir.Value:
    """The element in `register` of the old tensor value `old`; conjunctions and splats are taken apart."""
    owner = old.owner
    if not isinstance(owner, ir.Block):
        name = owner.name
        if name == "tile.splat":
            return ctx.value(owner.operands[0])
        if name == "arith.andi":
            a, b = (element(ctx, operand, register) for operand in owner.operands)
            return ctx.emit("llvm.and", a.type, (a, b))
    return vectors.extract(ctx, ctx.value(old), register)
