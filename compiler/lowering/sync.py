"""Barriers, fences and mbarriers."""

from mlir import ir

from tilewright.dialects import tilegpu

from . import access, cluster, linear
from .asm import inline_asm
from .branches import when
from .context import LoweringContext
from .registry import rule

WARPGROUP_THREADS = 128
#: One for the thread that the hardware picks to act for its warp, always the same one.
ELECT = "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 $0, 1, 0, p; }"
EACH_WARP = "tilegpu.each_warp"
_EACH_WARPGROUP = "tilegpu.each_warpgroup"


def own_rows(op: ir.Operation) -> int:
    """The rows of each of the blocks that warps access by themselves (`analysis.staging`), 0 where all warps do it together."""
    return ir.IntegerAttr(op.attributes[EACH_WARP]).value if EACH_WARP in op.attributes else 0


@rule("tilegpu.barrier")
def barrier(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """All warps meet; with `tilegpu.each_warp` the threads of each warp do."""
    ctx.warp_barrier() if EACH_WARP in op.attributes else ctx.barrier()
    return []


@rule("tile.barrier")
def program_barrier(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """With `tile.fence_proxy`, what was accessed plainly before is ordered before TMA accesses behind it."""
    if "tile.fence_proxy" in op.attributes:
        inline_asm(ctx, "fence.proxy.async;", "~{memory}", (), None)
        ctx.barrier()
    else:
        cluster.meet(ctx)
    return []


FIXED = {
    "tilegpu.cluster_arrive": cluster.ARRIVE,
    "tilegpu.cluster_wait": cluster.WAIT,
    "tilegpu.fence_async": "fence.proxy.async.shared::cta;",
}


@rule(*FIXED)
def fixed(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Instructions without operands. `tilegpu.apart`: the threads of a warp may come one by one."""
    text = FIXED[op.name].replace(".aligned", "") if "tilegpu.apart" in op.attributes else FIXED[op.name]
    inline_asm(ctx, text, "~{memory}", (), None)
    return []


@rule("tilegpu.named_barrier_sync", "tilegpu.named_barrier_arrive")
def named_barrier(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """With `tilegpu.turns = n`, one of the n barriers from `id` on: each warpgroup waits at its own and arrives at that of the next one.
    `tilegpu.last_warpgroup`: only the last of them arrives."""
    number, threads = (ir.IntegerAttr(op.attributes[name]).value for name in ("id", "threads"))
    kind = "sync" if op.name == "tilegpu.named_barrier_sync" else "arrive"
    if "tilegpu.turns" not in op.attributes:
        inline_asm(ctx, f"barrier.{kind}.aligned {number}, {threads};", "~{memory}", (), None)
        return []
    turns = ir.IntegerAttr(op.attributes["tilegpu.turns"]).value
    group = ctx.emit("llvm.lshr", ctx.types.i32, (ctx.uniform_warp_id, ctx.i32(2)))
    is_last = ctx.emit("llvm.icmp", ctx.types.i1, (group, ctx.i32(turns - 1)), ctx.types.icmp("eq"))
    if kind == "arrive":
        following = ctx.emit("llvm.add", ctx.types.i32, (group, ctx.i32(1)))
        group = ctx.emit("llvm.select", ctx.types.i32, (is_last, ctx.i32(0), following))
    barrier = ctx.emit("llvm.add", ctx.types.i32, (group, ctx.i32(number)))
    condition = is_last if "tilegpu.last_warpgroup" in op.attributes else None
    when(ctx, condition, lambda: inline_asm(ctx, f"barrier.{kind}.aligned $0, {threads};", "r,~{memory}", (barrier,), None))
    return []


@rule("tilegpu.mbarrier_init")
def mbarrier_init(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Thread 0 sets every slot; the fence makes that visible to the asynchronous copies of the whole cluster."""
    count = ir.IntegerAttr(op.attributes["count"]).value
    _, _, _, slots = tilegpu.buffer_info(op.operands[0].type)
    inits = " ".join(f"mbarrier.init.shared::cta.b64 [$0+{8 * slot}], {count};" for slot in range(max(slots, 1)))
    text = f"{inits} fence.mbarrier_init.release.cluster;"
    operands = (ctx.value(op.operands[0]),)
    when(ctx, access.first_thread(ctx), lambda: inline_asm(ctx, text, "r,~{memory}", operands, None))
    return []


def elected(ctx: LoweringContext, op: ir.Operation, index: int) -> ir.Value | None:
    """i1: the thread that issues for the CTA or role, if the optional predicate at operand `index` holds; None where the role is that one
    thread.

    The hardware elects it out of the first warp: of a branch on that ptxas knows that the warp stays together, so it makes no loops over
    the threads of the warp for TMA instructions, and keeps addresses in uniform registers in the loops around.
    """
    predicate = ctx.value(op.operands[index]) if len(op.operands) > index else None
    if ctx.role is not None and ctx.role.alone:
        return predicate
    return access.both(ctx, elect(ctx), predicate)


def elect(ctx: LoweringContext) -> ir.Value:
    """i1: whether this is the thread that the hardware elects out of the first warp of the CTA or role; whole warps must get here."""
    return access.both(ctx, is_first_warp(ctx), leads_warp(ctx))


def is_first_warp(ctx: LoweringContext) -> ir.Value:
    """i1: whether this is the first warp of the CTA or role."""
    return ctx.emit("llvm.icmp", ctx.types.i1, (ctx.uniform_warp_id, ctx.i32(0)), ctx.types.icmp("eq"))


def leads_warp(ctx: LoweringContext) -> ir.Value:
    """i1: whether the hardware picks this thread to act for its warp, all of which must get here."""
    leads = inline_asm(ctx, ELECT, "=r", (), ctx.types.i32)
    return ctx.emit("llvm.icmp", ctx.types.i1, (leads, ctx.i32(0)), ctx.types.icmp("ne"))


@rule("tilegpu.mbarrier_expect")
def mbarrier_expect(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    size = ir.IntegerAttr(op.attributes["bytes"]).value
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {size};"
    operands = (ctx.value(op.operands[0]),)
    when(ctx, elected(ctx, op, 1), lambda: inline_asm(ctx, text, "r,~{memory}", operands, None))
    return []


@rule("tilegpu.mbarrier_arrive")
def mbarrier_arrive(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Thread 0 arrives; with `tilegpu.each_warpgroup` the first thread of each warpgroup does, and with `tilegpu.ctas` the first threads of
    each, one at each CTA's mbarrier of those whose ranks differ in these bits."""
    count = ir.IntegerAttr(op.attributes["count"]).value
    if "tilegpu.ctas" in op.attributes:
        _arrive_in_cluster(ctx, op, count, ir.IntegerAttr(op.attributes["tilegpu.ctas"]).value)
        return []
    if _EACH_WARPGROUP in op.attributes:
        first = first_of_warpgroup(ctx)
        condition = access.both(ctx, first, ctx.value(op.operands[1]) if len(op.operands) > 1 else None)
    else:
        condition = elected(ctx, op, 1)
    text = f"@$1 mbarrier.arrive.shared::cta.b64 _, [$0], {count};"
    condition = ctx.constant(ctx.types.i1, 1) if condition is None else condition
    inline_asm(ctx, text, "r,b,~{memory}", (ctx.value(op.operands[0]), condition), None)
    return []


def first_of_warpgroup(ctx: LoweringContext, count: int = 1) -> ir.Value:
    """i1: whether this is one of the first `count` threads of its warpgroup."""

    def build() -> ir.Value:
        thread = ctx.emit("llvm.and", ctx.types.i32, (ctx.thread_id, ctx.i32(WARPGROUP_THREADS - 1)))
        return ctx.emit("llvm.icmp", ctx.types.i1, (thread, ctx.i32(count)), ctx.types.icmp("ult"))

    return ctx.once(f"first {count} of warpgroup", build)


def _arrive_in_cluster(ctx: LoweringContext, op: ir.Operation, count: int, ctas: int) -> None:
    """Arrive at the mbarriers of several CTAs. What the threads have written is not released to these, which would wait for all that is
    under way: slots that are given back were read, by wgmmas that are waited for."""
    buffer, *predicate = ctx.operands(op)
    bits = [1 << bit for bit in range(ctas.bit_length()) if ctas >> bit & 1]
    first = first_of_warpgroup(ctx, 1 << len(bits))
    target = ctx.once(
        f"own of {ctas}",
        lambda: ctx.emit("llvm.xor", ctx.types.i32, (ctx.cluster_rank, linear.apply_columns(ctx, ctx.thread_id, bits))),
    )
    condition = access.both(ctx, first, predicate[0] if predicate else None)
    text = f"{{ .reg .b32 A; mapa.shared::cluster.u32 A, $0, $2; @$1 mbarrier.arrive.shared::cluster.b64 _, [A], {count}; }}"
    inline_asm(ctx, text, "r,b,r,~{memory}", (buffer, condition, target), None)


@rule("tilegpu.mbarrier_wait")
def mbarrier_wait(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Every thread waits; a false predicate skips."""
    buffer, phase, *predicate = ctx.operands(op)
    condition = predicate[0] if predicate else ctx.constant(ctx.types.i1, 1)
    text = "{ .reg .pred P; @!$2 bra DONE; WAIT: mbarrier.try_wait.parity.shared::cta.b64 P, [$0], $1; @P bra DONE; bra WAIT; DONE: }"
    inline_asm(ctx, text, "r,r,b,~{memory}", (buffer, phase, condition), None)
    return []
