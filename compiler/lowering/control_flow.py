"""`scf` to branches. Values that a loop or a branch carries become block arguments, whole vectors included."""

from mlir import ir

from .context import LoweringContext
from .registry import rule


@rule("scf.for")
def for_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    lower, upper, step, *initial = ctx.operands(op)
    types = [ctx.type(r.type) for r in op.results]
    body = op.regions[0].blocks[0]
    header, loop, after = ctx.new_block(lower.type, *types), ctx.new_block(), ctx.new_block()
    ctx.branch(header, (lower, *initial))
    ctx.enter(header)
    induction, *carried = header.arguments
    less = ctx.types.icmp("ult" if "unsignedCmp" in op.attributes else "slt")
    more = ctx.emit("llvm.icmp", ctx.types.i1, (induction, upper), less)
    ctx.cond_branch(more, loop, after)
    ctx.enter(loop)
    with ctx.conditional():
        terminator = ctx.lower_block(body, (induction, *carried))
        ctx.loc = op.location
        following = ctx.emit("llvm.add", induction.type, (induction, step), ctx.types.no_signed_wrap)
        ctx.branch(header, (following, *ctx.operands(terminator)))
    ctx.enter(after)
    return carried


@rule("scf.while")
def while_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    before, after = (region.blocks[0] for region in op.regions)
    header = ctx.new_block(*[ctx.type(a.type) for a in before.arguments])
    loop, done = ctx.new_block(), ctx.new_block()
    ctx.branch(header, ctx.operands(op))
    ctx.enter(header)
    terminator = ctx.lower_block(before, header.arguments)
    condition, *passed = ctx.operands(terminator)
    ctx.loc = op.location
    ctx.cond_branch(condition, loop, done)
    ctx.enter(loop)
    with ctx.conditional():
        terminator = ctx.lower_block(after, passed)
        ctx.loc = op.location
        ctx.branch(header, ctx.operands(terminator))
    ctx.enter(done)
    return passed


@rule("scf.if")
def if_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (condition,) = ctx.operands(op)
    results = [ctx.type(r.type) for r in op.results]
    after = ctx.new_block(*results)
    regions = [region for region in op.regions if len(region.blocks)]
    blocks = [ctx.new_block() for _ in regions]
    ctx.cond_branch(condition, blocks[0], blocks[1] if len(blocks) > 1 else after)
    for region, block in zip(regions, blocks):
        ctx.enter(block)
        with ctx.conditional():
            terminator = ctx.lower_block(region.blocks[0])
            ctx.loc = op.location
            ctx.branch(after, ctx.operands(terminator))
    ctx.enter(after)
    return list(after.arguments)
