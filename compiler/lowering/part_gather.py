"""`tile.exchange` of small parts that every CTA wants all of: what a reduction across CTAs asks for.

Before: an op for which `is_pushed` holds has `tilegpu.offset`, the place of `scratch_bytes` bytes that nothing else uses, the same in every
CTA. After: each CTA has stored its part into the memory of all of them; each store counts its bytes on an mbarrier of the CTA that it goes
to, and that is all that a CTA waits for. A barrier of the cluster would flush what its threads have under way.

At its entry a kernel makes the mbarriers, and before the first store the cluster meets once, so that all of them are there. A CTA ends
after it has got what the others store to it. In a loop, two slots take turns: whoever stores to a slot again has got from this CTA what it
stored after its threads had read the slot, for they meet before that.
"""

from functools import lru_cache
from math import prod

from mlir import ir

from . import access, linear, shared_access, vectors
from .asm import inline_asm
from .branches import when
from .context import LoweringContext
from .types import scalar_type, types

_BARRIERS_BYTES = 16  # two mbarriers
_ALIGNMENT = 16
#: Stores of one thread above which an exchange goes through a barrier of the cluster.
_MOST_STORES = 16
_LOOPS = frozenset({"scf.for", "scf.while"})


def is_pushed(op: ir.Operation) -> bool:
    """Whether an exchange is of the kind that this file lowers. It must be in a kernel: mbarriers do not know how often a helper ran."""
    function = op.parent.operation
    while function.name != "func.func":
        function = function.parent.operation
    if "sym_visibility" in function.attributes and ir.StringAttr(function.attributes["sym_visibility"]).value != "public":
        return False
    if "from_first" in op.attributes:
        return False
    before, after = columns(op)
    moving = [bit for bit, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not moving or any(after[bit] for bit in moving):
        return False
    return all(prod(v.type.shape) << len(moving) <= _MOST_STORES * 32 for v in op.operands)


@lru_cache(maxsize=256)
def _packed(shape: tuple[int, ...], numbers: tuple[int, ...]) -> tuple[int, ...]:
    rank, out = len(shape), []
    for start in range(0, len(numbers), rank):
        packed = 0
        for size, step in zip(shape, numbers[start : start + rank], strict=True):
            packed = packed * size + step
        out.append(packed)
    return tuple(out)


def columns(op: ir.Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The packed coordinates that the bits of the rank add before and after an exchange."""
    shape = tuple(ir.DenseI32ArrayAttr(op.attributes["shape"]))
    return tuple(_packed(shape, tuple(ir.DenseI32ArrayAttr(op.attributes[name]))) for name in ("from", "to"))


def scratch_bytes(op: ir.Operation) -> int:
    """The bytes of shared memory that the exchange takes in each CTA."""
    return _BARRIERS_BYTES + _slots(op) * sum(map(_area, op.results))


def _slots(op: ir.Operation) -> int:
    parent = op.parent.operation
    while parent.name != "func.func":
        if parent.name in _LOOPS:
            return 2
        parent = parent.parent.operation
    return 1


def _word_bits(value: ir.Value) -> int:
    """Bits of an element in shared memory: what one store moves."""
    return max(32, types().width(scalar_type(value.type.element_type)))


def _area(result: ir.Value) -> int:
    return -(-prod(result.type.shape) * _word_bits(result) // 8 // _ALIGNMENT) * _ALIGNMENT


def make_mbarriers(ctx: LoweringContext, ops: list[ir.Operation]) -> None:
    """Make the mbarriers of these exchanges at the entry of a kernel, seen by the whole cluster behind its next barrier."""

    def make() -> None:
        for op in ops:
            inits = " ".join(f"mbarrier.init.shared::cta.b64 [$0+{8 * slot}], 1;" for slot in range(_slots(op)))
            inline_asm(ctx, f"{inits} fence.mbarrier_init.release.cluster;", "r,~{memory}", (ctx.scratch(op),), None)

    when(ctx, access.first_thread(ctx), make)


def gather(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Lower an exchange for which `is_pushed` holds."""
    t = ctx.types
    base, slots = ctx.scratch(op), _slots(op)
    mbarrier, areas, parity = base, _moved(ctx, base, ctx.i32(_BARRIERS_BYTES)), ctx.i32(0)
    if slots > 1:
        ctx.barrier()
        count = _count(ctx, op)
        slot = ctx.emit("llvm.and", t.i32, (count, ctx.i32(1)))
        parity = ctx.emit("llvm.and", t.i32, (ctx.emit("llvm.lshr", t.i32, (count, ctx.i32(1))), ctx.i32(1)))
        mbarrier = _moved(ctx, base, ctx.emit("llvm.mul", t.i32, (slot, ctx.i32(8))))
        areas = _moved(ctx, areas, ctx.emit("llvm.mul", t.i32, (slot, ctx.i32(sum(map(_area, op.results))))))
    total = sum(prod(r.type.shape) * _word_bits(r) // 8 for r in op.results)
    expect = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {total};"
    when(ctx, access.first_thread(ctx), lambda: inline_asm(ctx, expect, "r,~{memory}", (mbarrier,), None))
    places, at = [], 0
    for result in op.results:
        places.append(_moved(ctx, areas, ctx.i32(at)) if at else areas)
        at += _area(result)
    for old, vector, area in zip(op.operands, ctx.operands(op), places, strict=True):
        _push(ctx, op, old, vector, area, mbarrier)
    wait = "{ .reg .pred P; @!$2 bra DONE; WAIT: mbarrier.try_wait.parity.shared::cta.b64 P, [$0], $1; @P bra DONE; bra WAIT; DONE: }"
    inline_asm(ctx, wait, "r,r,b,~{memory}", (mbarrier, parity, ctx.constant(t.i1, 1)), None)
    return [_read(ctx, result, area) for result, area in zip(op.results, places, strict=True)]


def _moved(ctx: LoweringContext, pointer: ir.Value, offset: ir.Value) -> ir.Value:
    """A pointer, so many bytes on."""
    return ctx.emit("llvm.getelementptr", pointer.type, (pointer, offset), ctx.types.gep_attrs(ctx.types.i8))


def _count(ctx: LoweringContext, op: ir.Operation) -> ir.Value:
    """How often the thread has come here before, i32; LLVM makes a value that loops carry of the memory."""
    t = ctx.types

    def make() -> ir.Value:
        attrs = {"elem_type": ir.TypeAttr.get(t.i32), "alignment": t.int_attr(64, 4)}
        cell = ctx.emit("llvm.alloca", t.ptr, (ctx.i32(1),), attrs)
        ctx.emit_void("llvm.store", (ctx.i32(0), cell))
        return cell

    cell = ctx.once(f"count {ir.IntegerAttr(op.attributes['tilegpu.offset']).value}", make)
    count = ctx.emit("llvm.load", t.i32, (cell,))
    ctx.emit_void("llvm.store", (ctx.emit("llvm.add", t.i32, (count, ctx.i32(1))), cell))
    return count


def _push(ctx: LoweringContext, op: ir.Operation, old: ir.Value, vector: ir.Value, area: ir.Value, mbarrier: ir.Value) -> None:
    """Store the part to every CTA that wants it: threads that hold copies of an element take one CTA each."""
    t, layout = ctx.types, ctx.layout(old)
    before, after = columns(op)
    moving = [1 << bit for bit, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    kept = [bit for bit in range(sum(s.bit_length() - 1 for s in ir.DenseI32ArrayAttr(op.attributes["shape"]))) if 1 << bit not in after]
    inside = [bit for bit in kept if 1 << bit not in before]

    def place(coordinate: int) -> int:
        """Where an element of the whole lies in a CTA's new part."""
        return sum((coordinate >> bit & 1) << i for i, bit in enumerate(kept))

    def of_part(column: int) -> int:
        return place(sum((column >> i & 1) << bit for i, bit in enumerate(inside)))

    free = layout.free_masks()
    threads = layout.column("lane") + layout.column("warp")
    idle = free.get("lane", 0) | free.get("warp", 0) << layout.in_bits("lane")
    spread = [bit for bit in range(len(threads)) if idle >> bit & 1][: len(moving)]
    targets = [0] * len(threads)
    for bit, rank in zip(spread, moving, strict=False):
        targets[bit] = rank
    rest = linear.images(moving[len(spread) :])
    owner = access.are_zero(ctx, "thread_id", idle & ~sum(1 << bit for bit in spread))
    own = [place(before[bit]) if before[bit] and before[bit] not in after else 0 for bit in range(len(before))]
    offset = ctx.emit(
        "llvm.or",
        t.i32,
        (linear.apply_columns(ctx, ctx.thread_id, [of_part(c) for c in threads]), linear.apply_columns(ctx, ctx.cluster_rank, own)),
    )
    target = ctx.emit("llvm.xor", t.i32, (ctx.cluster_rank, linear.apply_columns(ctx, ctx.thread_id, targets)))
    bits = _word_bits(old)
    words = shared_access.to_memory(ctx, vector)
    if t.width(words.type) < bits:
        words = ctx.emit("llvm.zext", t.vector(t.parts(words.type)[0], t.int(bits)), (words,))
    where = ctx.emit("llvm.getelementptr", area.type, (area, offset), t.gep_attrs(t.int(bits)))
    images = linear.images([of_part(c) for c in layout.column("register")])
    text = (
        "{ .reg .b32 A, B; mapa.shared::cluster.u32 A, $0, $3; mapa.shared::cluster.u32 B, $1, $3; "
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b{bits} [A], $2, [B]; }}"
    )

    def store() -> None:
        for register, image in enumerate(images):
            if register & free.get("register", 0):
                continue
            word = vectors.extract(ctx, words, register)
            address = ctx.emit("llvm.getelementptr", where.type, (where,), t.const_gep_attrs(t.int(bits), image)) if image else where
            for step in rest:
                cta = ctx.emit("llvm.xor", t.i32, (target, ctx.i32(step))) if step else target
                inline_asm(ctx, text, f"r,r,{'l' if bits == 64 else 'r'},r,~{{memory}}", (address, mbarrier, word, cta), None)

    when(ctx, owner, store)


def _read(ctx: LoweringContext, result: ir.Value, area: ir.Value) -> ir.Value:
    """Read the new part, which lies in row-major order."""
    t, info, bits = ctx.types, ctx.tensor(result), _word_bits(result)
    places = {name: info.layout.column(name) for name in ("register", "lane", "warp")}
    loaded = shared_access.load(ctx, area, t.int(bits), places, matrix=False)
    memory = shared_access.memory_element(ctx, info.element)
    if t.width(memory) < bits:
        loaded = ctx.emit("llvm.trunc", t.vector(info.registers, memory), (loaded,))
    return shared_access.from_memory(ctx, loaded, info.element)
