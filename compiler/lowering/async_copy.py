"""Copies from global to shared memory that threads issue: cp.async, its groups and waits.

Before: each thread's groups of neighbouring elements in memory are neighbours in the buffer too, 4 bytes or more. After: one cp.async of
4, 8 or 16 bytes for each group, into the place that the buffer's layout gives it. A false mask writes zeros (or `other`); tokens are plain
values that order nothing at run time. What is too narrow for cp.async is loaded and stored by the thread itself.

Eviction policies are advice, and not passed on: where the address in shared memory has a uniform part, ptxas 13.0 and 13.5 then name a pair
of uniform registers that begins with an odd one (`LDGSTS.E [R7+UR0], desc[UR1][R20.64]`), an illegal instruction.
"""

from dataclasses import replace

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts import SharedLayout, f2, shared_columns
from tilewright.dialects import tilegpu

from . import access, shared_access, vectors
from .asm import inline_asm
from .context import LoweringContext
from .memory import load_group
from .registry import rule

MIN_BYTES, L2_ONLY_BYTES = 4, 16


@rule("tilegpu.async_copy")
def async_copy(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, buffer, mask, other = access.segments(op)
    shared = shared_of(buffer.type)
    planned = access.plan(ctx, pointer, mask)
    planned = _narrowed(planned, shared)
    columns = shared_columns(planned.layout, shared)
    addresses = access.Addresses(ctx, planned, ctx.value(pointer))
    places = shared_access.SharedAddresses(ctx, ctx.value(buffer), columns["lane"] + columns["warp"], planned.size, shared.padding)
    masks = None if mask is None else ctx.value(mask)
    others = None if other is None else ctx.value(other)
    owner = access.owner(ctx, planned.layout)
    memory_type = shared_access.memory_element(ctx, ctx.module.convert(tilegpu.buffer_info(buffer.type)[1]))
    for group in planned.grouping.groups:
        target = places.of(f2.apply(columns["register"], group[0]))
        wanted = None if masks is None else vectors.element(ctx, masks, group[0])
        default = None if others is None else shared_access.to_memory(ctx, vectors.shuffle(ctx, others, group))
        _copy(ctx, target, addresses.of(group[0]), len(group), memory_type, wanted, default, owner)
    return [ctx.i32(0)]


def _narrowed(planned: access.Access, shared: SharedLayout) -> access.Access:
    """The access with groups cut down to what is contiguous in the buffer as well."""
    columns = shared_columns(planned.layout, shared)["register"]
    width = planned.grouping.width
    limit = width if shared.padding is None else min(width, *shared.padding)
    while limit > 1:
        groups = access.grouping(planned.layout, planned.dim, limit)
        run = [f2.apply(columns, register) for register in groups.groups[0]]
        if all(offset == run[0] + i for i, offset in enumerate(run)) and run[0] % len(run) == 0:
            break
        limit //= 2
    return planned if limit == width else replace(planned, grouping=access.grouping(planned.layout, planned.dim, max(1, limit)))


def _copy(
    ctx: LoweringContext,
    target: ir.Value,
    source: ir.Value,
    width: int,
    memory_type: ir.Type,
    wanted: ir.Value | None,
    default: ir.Value | None,
    owner: ir.Value | None,
) -> None:
    """Copy one group. `wanted` is its mask, `default` what it becomes without it, `owner` whether this thread copies at all."""
    types = ctx.types
    size = width * types.width(memory_type) // 8
    if size < MIN_BYTES:
        value = load_group(ctx, source, access.both(ctx, owner, wanted), default, width, memory_type, ("", None))
        _store_group(ctx, target, value, owner)
        return
    caching = "cg" if size == L2_ONLY_BYTES else "ca"
    text = f"cp.async.{caching}.shared.global [$0], [$1], {size}"
    operands, letters = [target, source], ["r", "l"]
    predicate = owner
    if wanted is not None and default is None:
        # Bytes beyond the source size are filled with zeros.
        operands.append(ctx.emit("llvm.select", types.i32, (wanted, ctx.i32(size), ctx.i32(0))))
        letters.append("r")
        text += ", $2"
    elif wanted is not None:
        predicate = access.both(ctx, owner, wanted)
    if predicate is not None:
        text = f"@${len(operands)} {text}"
        operands.append(predicate)
        letters.append("b")
    inline_asm(ctx, text + ";", ",".join([*letters, "~{memory}"]), operands, None)
    if wanted is not None and default is not None:
        absent = ctx.emit("llvm.xor", types.i1, (wanted, ctx.constant(types.i1, 1)))
        _store_group(ctx, target, default, access.both(ctx, owner, absent))


def _store_group(ctx: LoweringContext, target: ir.Value, value: ir.Value, predicate: ir.Value | None) -> None:
    """Write a group to shared memory where `predicate` holds."""
    count, element = ctx.types.parts(value.type)
    size = count * ctx.types.width(element) // 8
    if predicate is None:
        ctx.emit_void("llvm.store", (value, target), {"alignment": ctx.types.int_attr(64, size)})
        return
    word = ctx.types.int(8 * size) if size < 4 else ctx.types.i32
    words = vectors.to_words(ctx, value, ctx.types.width(word))
    if size == 1:
        words = [ctx.emit("llvm.zext", ctx.types.i16, words)]
    vector = f".v{len(words)}" if len(words) > 1 else ""
    listed = ", ".join(f"${2 + i}" for i in range(len(words)))
    letters = ["r", "b"] + ["r" if size >= 4 else "h"] * len(words)
    value_text = "{" + listed + "}" if len(words) > 1 else listed
    text = f"@$1 st.shared{vector}.b{ctx.types.width(word)} [$0], {value_text};"
    inline_asm(ctx, text, ",".join([*letters, "~{memory}"]), (target, predicate, *words), None)


@rule("tilegpu.async_commit")
def async_commit(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    inline_asm(ctx, "cp.async.commit_group;", "~{memory}", (), None)
    return [ctx.i32(0)]


@rule("tilegpu.async_wait")
def async_wait(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    number = ir.IntegerAttr(op.attributes["num"]).value
    inline_asm(ctx, f"cp.async.wait_group {number};", "~{memory}", (), None)
    return [ctx.i32(0)]
