"""Loads and stores of global memory.

Before: the layout of a pointer tensor was chosen for coalescing. After: each group of neighbouring elements (`access.py`) is one
instruction of up to 16 bytes. An unconditional access without a modifier is an LLVM load or store, which LLVM may move and fold; all
others are predicated inline assembly in a helper function.
"""

from collections.abc import Sequence

from mlir import ir

from . import access, vectors
from .asm import REGISTER_CLASS, braces, inline_asm, inline_asm_multi
from .context import LoweringContext
from .registry import rule


def words_of(width: int, bits: int) -> tuple[int, int]:
    """(number, bits) of the words that one instruction moves for `width` elements of `bits` bits: v2.b64, or words of at most 32 bits."""
    total = width * bits
    if bits == 64:
        return width, 64
    return (total // 32, 32) if total >= 32 else (1, total)


def modifiers(ctx: LoweringContext, op: ir.Operation) -> tuple[str, ir.Value | None]:
    """(PTX qualifiers after the state space, L2 policy operand or None) of a load or store."""
    if "is_volatile" in op.attributes:
        return "volatile", None
    cache, evict = access.keyword(op, "cache"), access.keyword(op, "evict", "evict_normal")
    text = f".{cache}" if cache else ""
    if evict == "evict_normal":
        return text, None
    return (text or f".L1::{evict}") + ".L2::cache_hint", l2_policy(ctx, evict)


def l2_policy(ctx: LoweringContext, evict: str) -> ir.Value:
    """The L2 eviction policy for all accessed lines, i64."""
    text = f"createpolicy.fractional.L2::{evict}.b64 $0, 1.0;"
    return ctx.once(f"policy {evict}", lambda: inline_asm(ctx, text, "=l", (), ctx.types.i64, side_effects=False))


def qualified(kind: str, modifier: str) -> str:
    """`ld.global…` or `st.global…` with the qualifiers of `modifiers`."""
    return f"{kind}.volatile.global" if modifier == "volatile" else f"{kind}.global{modifier}"


@rule("tile.load")
def load(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, mask, other = access.segments(op)
    modifier = modifiers(ctx, op)
    pointers = ctx.value(pointer)
    masks = None if mask is None else ctx.value(mask)
    others = None if other is None else ctx.value(other)
    if not isinstance(pointer.type, ir.RankedTensorType):
        type = ctx.type(op.results[0].type)
        default = None if others is None else ctx.splat(others, 1)
        return [vectors.extract(ctx, load_group(ctx, pointers, masks, default, 1, type, modifier), 0)]
    element = ctx.tensor(op.results[0]).element
    planned = access.plan(ctx, pointer, mask)
    addresses = access.Addresses(ctx, planned, pointers)
    loaded = []
    for group in planned.grouping.groups:
        predicate = None if masks is None else vectors.element(ctx, masks, group[0])
        default = None if others is None else vectors.shuffle(ctx, others, group)
        loaded.append(load_group(ctx, addresses.of(group[0]), predicate, default, len(group), element, modifier))
    return [vectors.shuffle(ctx, vectors.concat(ctx, loaded), planned.grouping.source)]


def load_group(
    ctx: LoweringContext,
    pointer: ir.Value,
    predicate: ir.Value | None,
    default: ir.Value | None,
    width: int,
    element: ir.Type,
    modifier: tuple[str, ir.Value | None],
) -> ir.Value:
    """`vector<width x element>` read at `pointer`, or `default` (zero if None) where `predicate` is false."""
    type = ctx.types.vector(width, element)
    bits = ctx.types.width(element)
    qualifiers, policy = modifier
    if predicate is None and not qualifiers:
        return ctx.emit("llvm.load", type, (pointer,), {"alignment": ctx.types.int_attr(64, width * bits // 8)})
    if predicate is None:
        predicate = ctx.constant(ctx.types.i1, 1)
    if default is None:
        default = ctx.zero(type)
    count, word_bits = words_of(width, bits)

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        address, condition, initial, *policies = arguments
        words = words_from(inner, initial, count, word_bits)
        registers = [w.type for w in words]
        vector = f".v{count}" if count > 1 else ""
        hint = f", ${count + 2}" if policies else ""
        text = f"@${count + 1} {qualified('ld', qualifiers)}{vector}.b{word_bits} {braces(0, count)}, [${count}]{hint};"
        letter = REGISTER_CLASS[word_bits]
        constraints = [f"={letter}"] * count + ["l", "b"] + ["l"] * len(policies) + [str(i) for i in range(count)]
        operands = (address, condition, *policies, *words)
        results = inline_asm_multi(inner, text, ",".join(constraints), operands, registers)
        return words_to(inner, results, word_bits, type)

    operands = (pointer, predicate, default) if policy is None else (pointer, predicate, default, policy)
    return ctx.helper(f"load{qualifiers}.{width}x{element}", type, operands, build)


@rule("tile.store")
def store(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, value, *rest = op.operands
    mask = rest[0] if rest else None
    modifier = modifiers(ctx, op)
    pointers, values = ctx.value(pointer), ctx.value(value)
    masks = None if mask is None else ctx.value(mask)
    if not isinstance(pointer.type, ir.RankedTensorType):
        predicate = access.both(ctx, access.owner(ctx, None), masks)
        store_group(ctx, pointers, ctx.splat(values, 1), predicate, modifier)
        return []
    planned = access.plan(ctx, pointer, mask)
    addresses = access.Addresses(ctx, planned, pointers)
    owner = access.owner(ctx, planned.layout)
    for group in planned.grouping.groups:
        predicate = access.both(ctx, owner, None if masks is None else vectors.element(ctx, masks, group[0]))
        store_group(ctx, addresses.of(group[0]), vectors.shuffle(ctx, values, group), predicate, modifier)
    return []


def store_group(
    ctx: LoweringContext, pointer: ir.Value, value: ir.Value, predicate: ir.Value | None, modifier: tuple[str, ir.Value | None]
) -> None:
    """Write the vector `value` at `pointer` where `predicate` holds."""
    width, element = ctx.types.parts(value.type)
    bits = ctx.types.width(element)
    qualifiers, policy = modifier
    if predicate is None and not qualifiers:
        ctx.emit_void("llvm.store", (value, pointer), {"alignment": ctx.types.int_attr(64, width * bits // 8)})
        return
    if predicate is None:
        predicate = ctx.constant(ctx.types.i1, 1)
    count, word_bits = words_of(width, bits)

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> None:
        address, stored, condition, *policies = arguments
        words = words_from(inner, stored, count, word_bits)
        vector = f".v{count}" if count > 1 else ""
        hint = f", ${count + 2}" if policies else ""
        text = f"@${count + 1} {qualified('st', qualifiers)}{vector}.b{word_bits} [${count}], {braces(0, count)}{hint};"
        constraints = [REGISTER_CLASS[word_bits]] * count + ["l", "b"] + ["l"] * len(policies)
        inline_asm(inner, text, ",".join(constraints), (*words, address, condition, *policies), None)

    operands = (pointer, value, predicate) if policy is None else (pointer, value, predicate, policy)
    ctx.helper(f"store{qualifiers}.{width}x{element}", None, operands, build)


def words_from(ctx: LoweringContext, vector: ir.Value, count: int, bits: int) -> list[ir.Value]:
    """The elements of `vector` as `count` register words of `bits` bits; a word of 8 bits is widened to 16, pointers become integers."""
    length, element = ctx.types.parts(vector.type)
    if element in ctx.types.pointers:
        vector = ctx.emit("llvm.ptrtoint", ctx.types.vector(length, ctx.types.i64), (vector,))
    words = vectors.to_words(ctx, vector, bits)
    if bits == 8:
        words = [ctx.emit("llvm.zext", ctx.types.i16, (w,)) for w in words]
    return words


def words_to(ctx: LoweringContext, words: Sequence[ir.Value], bits: int, type: ir.Type) -> ir.Value:
    """The inverse of `words_from`, as a value of the vector type `type`."""
    length, element = ctx.types.parts(type)
    if bits == 8:
        words = [ctx.emit("llvm.trunc", ctx.types.i8, (w,)) for w in words]
    if element in ctx.types.pointers:
        return ctx.emit("llvm.inttoptr", type, (vectors.from_words(ctx, words, length, ctx.types.i64),))
    return vectors.from_words(ctx, words, length, element)
