"""`tilegpu.convert_layout`: from register moves over warp shuffles to a round trip through shared memory, as the algebra decides.

Before: an op whose conversion leaves its warps has `tilegpu.offset`, the place of `scratch_bytes` bytes of shared memory for it, and no
other thread still reads or writes there. After: the value has the result's layout; the scratch was read by all threads only after the
last barrier that this lowering places, so its next user needs a barrier before it.
"""

from functools import lru_cache

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, conversion_kind, f2, register_sources, scratch_plan, shuffle_plan
from tilewright.compiler.layouts.conversion import ScratchPlan, ShufflePlan

from . import linear, shared_access, vectors
from .context import LoweringContext
from .registry import rule

#: Shared memory that one conversion takes at most, if its layouts can be cut into rounds; more rounds cost two barriers each.
SCRATCH_LIMIT = 32 * 1024


@lru_cache(maxsize=4096)
def through_memory(src: LinearLayout, dst: LinearLayout, bits: int) -> ScratchPlan | None:
    """Return the plan of a conversion that takes shared memory, or None if registers and shuffles do. `bits` is the width of an element."""
    kind = conversion_kind(src, dst)
    if kind == "cluster":
        raise ValueError(f"conversion between the CTAs of a cluster: {src} to {dst}")
    if kind in ("identity", "register") or (kind == "warp" and shuffle_plan(src, dst) is not None):
        return None
    return scratch_plan(src, dst, max(8, bits) // 8, SCRATCH_LIMIT)


def scratch_bytes(src: LinearLayout, dst: LinearLayout, bits: int) -> int:
    """Return the bytes of shared memory that a conversion of elements of `bits` bits needs, a multiple of 16 or 0."""
    plan = through_memory(src, dst, bits)
    return 0 if plan is None else max(16, plan.elements * max(8, bits) // 8)


@rule("tilegpu.convert_layout")
def convert_layout(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (vector,) = ctx.operands(op)
    return [convert(ctx, op, vector, ctx.layout(op.operands[0]), ctx.layout(op.results[0]))]


def convert(ctx: LoweringContext, op: ir.Operation, vector: ir.Value, src: LinearLayout, dst: LinearLayout) -> ir.Value:
    """`vector` (registers of `src`) as registers of `dst`; `op` is the op that owns the scratch memory, if any is needed."""
    order = register_sources(src, dst)
    if order is not None:
        return vectors.shuffle(ctx, vector, order)
    element = ctx.types.parts(vector.type)[1]
    plan = through_memory(src, dst, ctx.types.width(element))
    words = shared_access.to_memory(ctx, vector)
    if plan is None:
        moved = _shuffle(ctx, words, shuffle_plan(src, dst))
    else:
        moved = _through_memory(ctx, ctx.scratch(op), words, plan)
    return shared_access.from_memory(ctx, moved, element)


# Inside a warp


def _shuffle(ctx: LoweringContext, vector: ir.Value, plan: ShufflePlan) -> ir.Value:
    """Carry out a shuffle plan on elements of 8 to 64 bits: as many as fit travel in one 32-bit word."""
    i32 = ctx.types.i32
    count, element = ctx.types.parts(vector.type)
    bits = ctx.types.width(element)
    if bits == 64:
        words = vectors.bitcast(ctx, vector, ctx.types.vector(2 * count, i32))
        low, high = (vectors.shuffle(ctx, words, range(half, 2 * count, 2)) for half in (0, 1))
        low, high = (_shuffle_words(ctx, part, plan) for part in (low, high))
        n = plan.registers
        both = vectors.shuffle(ctx, low, [i // 2 + n * (i % 2) for i in range(2 * n)], high)
        return vectors.shuffle(ctx, vectors.bitcast(ctx, both, ctx.types.vector(n, element)), plan.expand)
    room = (32 // bits).bit_length() - 1
    pairs = plan.packable_bits()[:room]
    dst_bits, src_bits = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    per_word = 1 << len(pairs)
    vector = vectors.shuffle(ctx, vector, _bits_first(src_bits, count.bit_length() - 1))
    words = count // per_word
    packed = vectors.bitcast(ctx, vector, ctx.types.vector(words, ctx.types.int(bits * per_word)))
    if bits * per_word < 32:
        packed = ctx.emit("llvm.zext", ctx.types.vector(words, i32), (packed,))
    moved = _shuffle_words(ctx, packed, _without_bits(plan, dst_bits, src_bits))
    out = plan.registers // per_word
    if bits * per_word < 32:
        moved = ctx.emit("llvm.trunc", ctx.types.vector(out, ctx.types.int(bits * per_word)), (moved,))
    moved = vectors.bitcast(ctx, moved, ctx.types.vector(plan.registers, element))
    position = {register: i for i, register in enumerate(_bits_first(dst_bits, len(plan.source)))}
    return vectors.shuffle(ctx, moved, [position[r] for r in plan.expand])


def _bits_first(bits: tuple[int, ...], total: int) -> list[int]:
    """All register numbers of `total` bits, counted with `bits` as the lowest ones."""
    return linear.images([1 << b for b in (*bits, *(b for b in range(total) if b not in bits))])


@lru_cache(maxsize=1024)
def _without_bits(plan: ShufflePlan, dst_bits: tuple[int, ...], src_bits: tuple[int, ...]) -> ShufflePlan:
    """The plan for words, each holding the elements that differ in the given register bits."""

    def squeeze(value: int, dropped: tuple[int, ...]) -> int:
        out, position = 0, 0
        for bit in range(value.bit_length()):
            if bit not in dropped:
                out |= (value >> bit & 1) << position
                position += 1
        return out

    def kept(columns):
        return tuple(c for i, c in enumerate(columns) if i not in dst_bits)

    return ShufflePlan(
        pre=tuple(squeeze(c, src_bits) for c in plan.pre),
        source=tuple(squeeze(c, src_bits) for c in kept(plan.source)),
        lane_of_register=kept(plan.lane_of_register),
        lane_of_thread=plan.lane_of_thread,
        post=tuple(squeeze(c, dst_bits) for c in plan.post),
        expand=(),
    )


def _shuffle_words(ctx: LoweringContext, vector: ir.Value, plan: ShufflePlan) -> ir.Value:
    """The three steps of a plan on `vector<N x i32>`; the result holds the plan's distinct registers."""
    i32 = ctx.types.i32
    vector = _exchange_registers(ctx, vector, plan.pre)
    sources, lanes = linear.images(plan.source), linear.images(plan.lane_of_register)
    same_lane = plan.same_lane
    lane = None
    if not same_lane:
        lane = ctx.once(f"shuffle lane {plan.lane_of_thread}", lambda: linear.apply_columns(ctx, ctx.thread_id, plan.lane_of_thread))
    if same_lane and not any(lanes):
        moved = vectors.shuffle(ctx, vector, sources)
    else:
        out = []
        for source, other in zip(sources, lanes, strict=True):
            word = vectors.extract(ctx, vector, source)
            if not same_lane:
                index = lane if other == 0 else ctx.emit("llvm.xor", i32, (lane, ctx.i32(other)))
                word = _shuffle_word(ctx, "idx", word, index)
            elif other:
                word = _shuffle_word(ctx, "bfly", word, ctx.i32(other))
            out.append(word)
        moved = vectors.pack(ctx, out)
    return _exchange_registers(ctx, moved, plan.post)


def _shuffle_word(ctx: LoweringContext, mode: str, word: ir.Value, lane: ir.Value) -> ir.Value:
    operands = (ctx.i32(-1), word, lane, ctx.i32(ctx.facts.threads_per_warp - 1))
    return ctx.call_intrinsic(f"llvm.nvvm.shfl.sync.{mode}.i32", ctx.types.i32, operands)


def _exchange_registers(ctx: LoweringContext, vector: ir.Value, columns: tuple[int, ...]) -> ir.Value:
    """Register i becomes register i XOR the image of the thread id under `columns`, one select for each dimension of that image."""
    count = vectors.length(ctx, vector)
    basis = f2.image(columns)
    coefficients = f2.solve(basis, columns)
    for k, step in enumerate(basis):
        mask = sum((c >> k & 1) << bit for bit, c in enumerate(coefficients))
        other = vectors.shuffle(ctx, vector, [i ^ step for i in range(count)])
        vector = ctx.emit("llvm.select", vector.type, (_parity(ctx, mask), other, vector))
    return vector


def _parity(ctx: LoweringContext, mask: int) -> ir.Value:
    """i1: the XOR of the bits of the thread id that `mask` selects."""

    def build() -> ir.Value:
        if mask & (mask - 1) == 0:
            bits = ctx.emit("llvm.and", ctx.types.i32, (ctx.thread_id, ctx.i32(mask)))
        else:
            bits = linear.apply_columns(ctx, ctx.thread_id, [mask >> i & 1 for i in range(mask.bit_length())])
        return ctx.emit("llvm.icmp", ctx.types.i1, (bits, ctx.i32(0)), ctx.types.icmp("ne"))

    return ctx.once(f"parity {mask}", build)


# Through shared memory


def _through_memory(ctx: LoweringContext, base: ir.Value, vector: ir.Value, plan: ScratchPlan) -> ir.Value:
    """Write the source's registers, wait, read the destination's; once for each round."""
    element = ctx.types.parts(vector.type)[1]
    loaded: list[ir.Value] = []
    order: list[int] = []
    for number in range(plan.rounds):
        registers, columns, start = _round(plan.src, plan.src_columns, plan.src_round, number)
        if number:
            ctx.barrier()
        shared_access.store(ctx, base, vectors.shuffle(ctx, vector, [plan.unique[r] for r in registers]), columns, start)
        ctx.barrier()
        registers, columns, start = _round(plan.dst, plan.dst_columns, plan.dst_round, number)
        loaded.append(shared_access.load(ctx, base, element, columns, start))
        order += registers
    position = {register: i for i, register in enumerate(order)}
    return vectors.shuffle(ctx, vectors.concat(ctx, loaded), [position[r] for r in plan.expand])


@lru_cache(maxsize=1024)
def _round(
    layout: LinearLayout, flat: tuple[int, ...], rounds: tuple[int, ...], number: int
) -> tuple[list[int], dict[str, tuple[int, ...]], int]:
    """(registers, offset columns, constant offset) of one side in round `number`; the columns number these registers."""
    numbers, basis = registers_of_round(rounds, number)
    bits = layout.in_bits("register")
    columns, at = {}, 0
    for name, count in layout.in_bits_dict.items():
        columns[name] = flat[at : at + count]
        at += count
    start = f2.apply(columns["register"], numbers[0])
    columns["register"] = tuple(f2.apply(flat[:bits], mask) for mask in basis)
    return numbers, columns, start


def registers_of_round(rounds: tuple[int, ...], number: int) -> tuple[list[int], f2.Matrix]:
    """The registers whose image under the columns `rounds` is `number`, and the masks by which they differ from the first one."""
    first = f2.solve(rounds, [number])[0]
    basis = f2.kernel(rounds)
    return [first ^ r for r in linear.images(basis)], basis
