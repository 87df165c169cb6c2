"""Atomic operations on global memory.

The owner of each element does the operation, under its mask; other threads that hold a copy of the result get it by a shuffle, or
through shared scratch where they sit in other warps. Before a release all threads of the program meet, so that what they wrote is
ordered before the owner's operation.
"""

from collections.abc import Callable, Sequence

from mlir import ir

from tilewright.compiler.analysis.loop_slice import is_cheap
from tilewright.compiler.layouts import LinearLayout
from tilewright.compiler.passes.building import is_public

from . import access, cluster, linear, vectors, warps
from .asm import REGISTER_CLASS, braces, inline_asm, inline_asm_multi
from .branches import when
from .context import LoweringContext
from .memory import words_from, words_to
from .registry import rule

Action = Callable[[ir.Value, ir.Value | None, list[ir.Value], str], ir.Value | None]

RELEASES = ("release", "acq_rel")
ACQUIRES = ("acquire", "acq_rel")
SCOPES = ("cta", "gpu", "sys")
POLL_SLEEP = 64  # nanoseconds between two polls


def scratch_bytes(layout: LinearLayout | None, element_bits: int) -> int:
    """Bytes of shared memory that an atomic needs whose result is used; `layout` None stands for a scalar."""
    size = max(1, element_bits // 8)
    if layout is None:
        return size
    return size << layout.out_bits if layout.free_masks().get("warp", 0) else 0


@rule("tile.atomic_rmw")
def atomic_rmw(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, value, *rest = op.operands
    kind, used, scope = access.keyword(op, "kind"), is_used(op.results[0]), ordering(op)[1]
    element = element_of(ctx, value)
    width = vector_limit(ctx, kind, element)

    def action(address: ir.Value, predicate: ir.Value | None, values: list[ir.Value], sem: str) -> ir.Value | None:
        if kind == "fadd" and element == ctx.types.bf16 and ctx.facts.arch < 90:
            return add_bf16_by_cas(ctx, address, predicate, values[0], sem, scope)
        return rmw_group(ctx, address, predicate, values[0], kind, sem, scope, used)

    return perform(ctx, op, pointer, rest[0] if rest else None, [value], action, width)


@rule("tile.atomic_cas")
def atomic_cas(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, compare, value = op.operands
    scope = ordering(op)[1]

    def action(address: ir.Value, predicate: ir.Value | None, values: list[ir.Value], sem: str) -> ir.Value:
        bits = ctx.types.width(values[0].type)
        return simple(ctx, f"atom.{sem}.{scope}.global.cas.b{bits} $0, [$1], $2, $3;", address, predicate, values, values[0].type)

    return perform(ctx, op, pointer, None, [compare, value], action)


@rule("tile.atomic_load")
def atomic_load(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, *rest = op.operands
    scope = ordering(op)[1]
    type = ctx.types.vector(1, element_of(ctx, op.results[0]))

    def action(address: ir.Value, predicate: ir.Value | None, values: list[ir.Value], sem: str) -> ir.Value:
        return simple(ctx, f"ld.{sem}.{scope}.global.b{ctx.types.width(type)} $0, [$1];", address, predicate, values, type)

    return perform(ctx, op, pointer, rest[0] if rest else None, [], action)


@rule("tile.atomic_store")
def atomic_store(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, value, *rest = op.operands
    scope = ordering(op)[1]

    def action(address: ir.Value, predicate: ir.Value | None, values: list[ir.Value], sem: str) -> None:
        simple(ctx, f"st.{sem}.{scope}.global.b{ctx.types.width(values[0].type)} [$0], $1;", address, predicate, values, None)

    return perform(ctx, op, pointer, rest[0] if rest else None, [value], action)


@rule("tile.atomic_poll")
def atomic_poll(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, expected, *rest = op.operands
    scope = ordering(op)[1]
    timeout = ctx.value(rest[0]) if rest else None
    t = ctx.types

    def action(address: ir.Value, predicate: ir.Value | None, values: list[ir.Value], sem: str) -> ir.Value:
        bits = t.width(values[0].type)
        end = "add.u64 E, T, $3;" if timeout is not None else ""
        late = "mov.u64 T, %globaltimer; setp.ge.u64 Q, T, E; @Q bra DONE;" if timeout is not None else ""
        text = (
            f"{{ .reg .pred P, Q; .reg .b{bits} V; .reg .b64 T, E; mov.b32 $0, 0; mov.u64 T, %globaltimer; {end} "
            f"LOOP: ld.{sem}.{scope}.global.b{bits} V, [$1]; setp.eq.b{bits} P, V, $2; @P mov.b32 $0, 1; @P bra DONE; "
            f"{late} nanosleep.u32 {POLL_SLEEP}; bra LOOP; DONE: }}"
        )
        (word,) = words_from(ctx, values[0], 1, bits)
        operands = (address, word) if timeout is None else (address, word, timeout)
        constraints = f"=&r,l,{REGISTER_CLASS[bits]}" + (",l" if timeout is not None else "") + ",~{memory}"
        found = when(ctx, predicate, lambda: inline_asm(ctx, text, constraints, operands, t.i32), t.i32)
        return ctx.splat(ctx.emit("llvm.trunc", t.i1, (found,)), 1)

    return perform(ctx, op, pointer, None, [expected], action)


# What all atomics share


def is_used(value: ir.Value) -> bool:
    """Whether a value has a use."""
    return next(iter(value.uses), None) is not None


def ordering(op: ir.Operation) -> tuple[str, str]:
    """(semantics, scope) as PTX writes them."""
    return access.keyword(op, "sem", "acq_rel"), access.keyword(op, "scope", "gpu")


def element_of(ctx: LoweringContext, value: ir.Value) -> ir.Type:
    """The LLVM type of one element of an old value."""
    return ctx.types.parts(ctx.type(value.type))[1]


def perform(
    ctx: LoweringContext,
    op: ir.Operation,
    pointer: ir.Value,
    mask: ir.Value | None,
    values: Sequence[ir.Value],
    action: Action,
    width: int = 1,
) -> list[ir.Value]:
    """Do `action(address, predicate, vectors, semantics)` for each group of up to `width` elements and hand the results to all who hold
    them. Where a thread has several groups, one fence before and one behind them order all of them."""
    sem, scope = ordering(op)
    if sem in RELEASES:
        cluster.meet(ctx)
    if sem in ACQUIRES and is_last(op):
        sem = "release" if sem in RELEASES else "relaxed"
    result = op.results[0] if len(op.results) else None
    is_tensor = isinstance(pointer.type, ir.RankedTensorType)
    masks = None if mask is None else ctx.value(mask)
    lowered = [ctx.value(v) for v in values]
    if not is_tensor:
        predicate = access.both(ctx, access.owner(ctx, None), masks)
        returned = action(ctx.value(pointer), predicate, [ctx.splat(v, 1) for v in lowered], sem)
        if result is None or not is_used(result):
            return [] if result is None else [ctx.poison(ctx.type(result.type))]
        shared = through_scratch(ctx, op, returned, access.owner(ctx, None), ctx.constant_vector(ctx.types.i32, [0]))
        return [vectors.extract(ctx, shared, 0)]
    size = access.element_bytes(access.tile.pointee(pointer.type.element_type))
    planned = access.plan(ctx, pointer, mask, width * size)
    addresses = access.Addresses(ctx, planned, ctx.value(pointer))
    owner = access.owner(ctx, planned.layout)
    fenced = len(planned.grouping.groups) > 1
    if fenced and sem in RELEASES:
        fence(ctx, scope)
    pieces = []
    for group in planned.grouping.groups:
        predicate = access.both(ctx, owner, None if masks is None else vectors.element(ctx, masks, group[0]))
        operands = [vectors.shuffle(ctx, v, group) for v in lowered]
        pieces.append(action(addresses.of(group[0]), predicate, operands, "relaxed" if fenced else sem))
    if fenced and sem in ACQUIRES:
        fence(ctx, scope)
    if result is None:
        return []
    if not is_used(result):
        return [ctx.poison(ctx.type(result.type))]
    returned = vectors.shuffle(ctx, vectors.concat(ctx, pieces), planned.grouping.source)
    return [share(ctx, op, returned, planned.layout, owner)]


def fence(ctx: LoweringContext, scope: str) -> None:
    """Order all that this thread does before with all that it does after, for the threads of `scope`."""
    inline_asm(ctx, f"fence.acq_rel.{scope};", "~{memory}", (), None)


def is_last(op: ir.Operation) -> bool:
    """Whether the kernel neither reads nor writes memory behind an atomic operation, so that nothing shows whether it acquired; or the next
    that does is an atomic one that releases, whose fence orders both ways."""
    function = op.parent.operation
    if function.name != "func.func" or not is_public(function):
        return False
    block = [other.operation for other in op.block.operations]
    for other in block[block.index(op) + 1 :]:
        if other.name == "tile.atomic_rmw" and isinstance(other.operands[0].type, ir.RankedTensorType):
            return ordering(other)[0] in RELEASES and SCOPES.index(ordering(other)[1]) >= SCOPES.index(ordering(op)[1])
        if not is_cheap(other.name) and other.name != "func.return":
            return False
    return True


def share(ctx: LoweringContext, op: ir.Operation, value: ir.Value, layout: LinearLayout, owner: ir.Value | None) -> ir.Value:
    """`value` of the owner of each element, in every thread that holds a copy."""
    free = layout.free_masks()
    if free.get("warp", 0):
        return through_scratch(ctx, op, value, owner, linear.linear_indices(ctx, layout))
    lanes = free.get("lane", 0)
    if not lanes:
        return value
    source = ctx.emit("llvm.and", ctx.types.i32, (ctx.lane_id, ctx.i32(ctx.facts.threads_per_warp - 1 & ~lanes)))
    return warps.shuffle_index(ctx, value, source)


def through_scratch(ctx: LoweringContext, op: ir.Operation, value: ir.Value, owner: ir.Value | None, indices: ir.Value) -> ir.Value:
    """Write the owners' elements to the op's scratch at `indices` and read them back in all threads."""
    t = ctx.types
    count, element = t.parts(value.type)
    is_flag = element == t.i1
    stored = ctx.emit("llvm.zext", t.vector(count, t.i8), (value,)) if is_flag else value
    memory = t.i8 if is_flag else element
    base = ctx.scratch(op)
    places = [
        ctx.emit("llvm.getelementptr", base.type, (base, vectors.extract(ctx, indices, i)), t.gep_attrs(memory)) for i in range(count)
    ]

    def write() -> None:
        for i, place in enumerate(places):
            ctx.emit_void("llvm.store", (vectors.extract(ctx, stored, i), place))

    when(ctx, owner, write)
    ctx.barrier()
    read = vectors.pack(ctx, [ctx.emit("llvm.load", memory, (place,)) for place in places])
    return ctx.emit("llvm.trunc", value.type, (read,)) if is_flag else read


# The instructions


def simple(
    ctx: LoweringContext, text: str, address: ir.Value, predicate: ir.Value | None, values: Sequence[ir.Value], type: ir.Type | None
) -> ir.Value | None:
    """A predicated instruction on one element: output (if `type`), address, then `values`, in this order in `text`."""
    t = ctx.types
    words = []
    for value in values:
        words += words_from(ctx, value, 1, t.width(value.type))
    operands = [address, *words]
    bits = [t.widths[w.type] for w in words]
    constraints = ["l"] + [REGISTER_CLASS[b] for b in bits]
    out = 0 if type is None else 1
    if predicate is not None:
        text = f"@${out + len(operands)} {text}"
        operands.append(predicate)
        constraints.append("b")
    if type is None:
        return inline_asm(ctx, text, ",".join([*constraints, "~{memory}"]), operands, None)
    width = t.width(type)
    word = t.int(max(width, 16))
    if predicate is not None:  # where the predicate is false the result is zero
        operands.append(ctx.constant(word, 0))
        constraints.append("0")
    result = inline_asm(ctx, text, ",".join([f"={REGISTER_CLASS[width]}", *constraints, "~{memory}"]), operands, word)
    return words_to(ctx, [result], width, type)


def vector_limit(ctx: LoweringContext, kind: str, element: ir.Type) -> int:
    """Neighbouring elements that one instruction may add: packed pairs of 16 bits, and vectors on sm_90."""
    t = ctx.types
    if kind != "fadd":
        return 1
    if ctx.facts.arch >= 90:
        return {t.f16: 8, t.bf16: 8, t.f32: 4}.get(element, 1)
    return 2 if element == t.f16 else 1


PTX_TYPES = {"max": "s", "min": "s", "umax": "u", "umin": "u", "add": "u", "and": "b", "or": "b", "xor": "b", "xchg": "b"}


def rmw_group(
    ctx: LoweringContext, address: ir.Value, predicate: ir.Value | None, value: ir.Value, kind: str, sem: str, scope: str, used: bool
) -> ir.Value | None:
    """One read-modify-write of a group; `red`, which returns nothing, if the result is unused and the ordering allows it."""
    t = ctx.types
    width, element = t.parts(value.type)
    bits = t.widths[element]
    operation = {"umax": "max", "umin": "min", "fadd": "add", "xchg": "exch"}.get(kind, kind)
    if kind == "fadd":
        half = ".noftz" if bits == 16 else ""
        name = {t.f16: "f16", t.bf16: "bf16", t.f32: "f32", t.f64: "f64"}[element]
        packed = "x2" if bits == 16 and width > 1 else ""
        vector = f".v{width * bits // 32}" if width * bits > 32 and bits < 64 else ""
        suffix = f"{operation}{half}{vector}.{name}{packed}"
    else:
        suffix = f"{operation}.{PTX_TYPES[kind]}{bits}"
    word_bits = min(32, width * bits) if bits < 64 else 64
    count = width * bits // word_bits
    returns = used or sem in ("acquire", "acq_rel") or kind == "xchg"
    instruction = f"{'atom' if returns else 'red'}.{sem}.{scope}.global.{suffix}"

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value | None:
        address, stored, condition = arguments
        words = words_from(inner, stored, count, word_bits)
        letter = REGISTER_CLASS[word_bits]
        inputs = [letter] * count + ["l", "b"]
        operands = [*words, address, condition]
        if not returns:
            text = f"@${count + 1} {instruction} [${count}], {braces(0, count)};"
            return inline_asm(inner, text, ",".join([*inputs, "~{memory}"]), operands, None)
        text = f"@${2 * count + 1} {instruction} {braces(0, count)}, [${2 * count}], {braces(count, count)};"
        constraints = [f"={letter}"] * count + inputs + [str(i) for i in range(count)] + ["~{memory}"]
        zeros = [inner.constant(w.type, 0) for w in words]
        results = inline_asm_multi(inner, text, ",".join(constraints), [*operands, *zeros], [w.type for w in words])
        return words_to(inner, results, word_bits, stored.type)

    condition = ctx.constant(t.i1, 1) if predicate is None else predicate
    return ctx.helper(f"{instruction}.{width}x{element}", value.type if returns else None, (address, value, condition), build)


def add_bf16_by_cas(ctx: LoweringContext, address: ir.Value, predicate: ir.Value | None, value: ir.Value, sem: str, scope: str) -> ir.Value:
    """Add one bf16 on machines without the instruction: compare and swap until nobody was in between."""
    t = ctx.types
    text = (
        "{ .reg .pred P; .reg .b16 OLD, NEW, ONE; mov.b16 ONE, 0x3F80; "
        f"ld.relaxed.{scope}.global.b16 $0, [$1]; LOOP: mov.b16 OLD, $0; fma.rn.bf16 NEW, OLD, ONE, $2; "
        f"atom.{sem}.{scope}.global.cas.b16 $0, [$1], OLD, NEW; setp.ne.b16 P, OLD, $0; @P bra LOOP; }}"
    )
    (word,) = words_from(ctx, value, 1, 16)
    result = when(ctx, predicate, lambda: inline_asm(ctx, text, "=&h,l,h,~{memory}", (address, word), t.i16), t.i16)
    return words_to(ctx, [result], 16, value.type)
