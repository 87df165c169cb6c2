"""`tilegpu.warp_specialize`: warps branch to the code of their role.

Before: the roles' warps are numbered one role after the other, and together they are all warps of the CTA. After: each warp has asked for
its role's registers and runs its region. One thread runs that of a role named "producer", or one warp if there are tensors in it; all its
warps meet at the named barrier that the region begins with, behind mbarriers that one thread makes. Within a region thread ids count from
the role's first warp, and a barrier is a named one of the role's threads. The roles come together behind the op, but do not wait there.
"""

from dataclasses import replace

from mlir import ir

from tilewright.compiler import named_barriers

from .asm import inline_asm
from .branches import when
from .context import LoweringContext, Role
from .registry import rule
from .sync import elect, is_first_warp
from .tma import prefetch_tensor_maps


@rule("tilegpu.warp_specialize")
def warp_specialize(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["roles"])]
    warps, registers = (list(ir.DenseI32ArrayAttr(op.attributes[name])) for name in ("warps", "registers"))
    captures = ctx.operands(op)
    after = ctx.new_block(*[ctx.type(r.type) for r in op.results])
    if len(op.results):
        raise ValueError("roles that return values have no lowering")
    starts = [sum(warps[:i]) for i in range(len(warps))]
    entries = [ctx.new_block() for _ in names]
    for entry, start, count in zip(entries[:-1], starts, warps, strict=False):
        other = ctx.new_block()
        mine = ctx.emit("llvm.icmp", ctx.types.i1, (ctx.uniform_warp_id, ctx.i32(start + count)), ctx.types.icmp("ult"))
        ctx.cond_branch(mine, entry, other)
        ctx.enter(other)
    ctx.branch(entries[-1])
    for number, (name, region) in enumerate(zip(names, op.regions, strict=True)):
        ctx.enter(entries[number])
        is_producer = name == "producer"
        alone = is_producer and not _has_tensors(region.blocks[0])
        role = Role(starts[number], warps[number], named_barriers.ROLES + number, alone)
        with ctx.conditional(), ctx.as_role(role):
            if not number:
                prefetch_tensor_maps(ctx)  # a producer reads its own at once
            ctx.values.update(zip(region.blocks[0].arguments, captures, strict=True))
            *body, _ = (view.operation for view in region.blocks[0].operations)
            start = _start(body) if is_producer else 0
            if start:
                _begin(ctx, body[:start], role)
            _set_registers(ctx, registers[number], max(registers))
            if is_producer:
                chosen = ctx.new_block()
                ctx.cond_branch(elect(ctx) if alone else is_first_warp(ctx), chosen, after)
                ctx.enter(chosen)
            for inner in body[start:]:
                ctx.lower_op(inner)
            ctx.branch(after)
    ctx.enter(after)
    return []


def _start(body: list[ir.Operation]) -> int:
    """How many operations a producer's start has: those up to its first named barrier."""
    return next((i + 1 for i, op in enumerate(body) if op.name in ("tilegpu.named_barrier_arrive", "tilegpu.named_barrier_sync")), 0)


def _begin(ctx: LoweringContext, start: list[ir.Operation], role: Role) -> None:
    """Lower a producer's start: what one thread does, and the barrier for all."""
    *inits, barrier = start

    def init() -> None:
        ctx.role = replace(role, alone=True)
        for op in inits:
            ctx.lower_op(op)
        ctx.role = role

    when(ctx, elect(ctx), init)
    if not role.alone:
        ctx.warp_barrier()
    ctx.lower_op(barrier)


def _set_registers(ctx: LoweringContext, count: int, most: int) -> None:
    """Take registers over, or give them up: the role with the most takes them."""
    if count:
        inline_asm(ctx, f"setmaxnreg.{'inc' if count == most else 'dec'}.sync.aligned.u32 {count};", "~{memory}", (), None)


def _has_tensors(block: ir.Block) -> bool:
    """Whether an operation inside works on a tensor, which takes a whole warp."""
    ops = [op.operation for op in block.operations]
    return any(isinstance(r.type, ir.RankedTensorType) for op in ops for r in op.results) or any(
        _has_tensors(inner) for op in ops for region in op.regions for inner in region.blocks
    )
