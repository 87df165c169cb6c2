"""`tile.fp_to_fp`: conversions between float formats.

Between f16, bf16, f32 and f64 LLVM's fpext and fptrunc do it. An 8-bit format is an i8 in LLVM: sm_89 and newer convert e4m3 and e5m2 in
pairs; all other cases are integer arithmetic on whole vectors, with the same results.

A narrowing conversion to an 8-bit format saturates: overflow and infinity give the largest finite value. NaN gives NaN (the largest
value in fp8e4b15, which has no NaN).
"""

import math

from mlir import ir

from . import vectors
from .access import keyword
from .asm import inline_asm
from .context import LoweringContext
from .elementwise import intrinsic, per_element
from .float8 import E4B15, Float8, float8_format
from .registry import rule


@rule("tile.fp_to_fp")
def fp_to_fp(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (value,) = ctx.operands(op)
    source, target = float8_format(op.operands[0].type), float8_format(op.results[0].type)
    toward_zero = keyword(op, "rounding") == "rtz"
    type = ctx.type(op.results[0].type)
    if ctx.types.parts(value.type)[0] == 0 and (source or target):
        one = convert(ctx, ctx.splat(value, 1), source, target, ctx.types.vector(1, type), toward_zero)
        return [vectors.extract(ctx, one, 0)]
    return [convert(ctx, value, source, target, type, toward_zero)]


def convert(
    ctx: LoweringContext, value: ir.Value, source: Float8 | None, target: Float8 | None, type: ir.Type, toward_zero: bool
) -> ir.Value:
    """`value` converted to the LLVM type `type`; `source` and `target` say which 8-bit formats are meant by i8."""
    if source is not None:
        value = decode(ctx, value, source)
        if target is None:
            return convert_float(ctx, value, ctx.types.parts(type)[1], toward_zero)
    if target is not None:
        return encode(ctx, value, target, toward_zero)
    return convert_float(ctx, value, ctx.types.parts(type)[1], toward_zero)


def convert_float(ctx: LoweringContext, value: ir.Value, element: ir.Type, toward_zero: bool) -> ir.Value:
    """A value of floats of 16 to 64 bits as floats of type `element`."""
    t = ctx.types
    have = t.parts(value.type)[1]
    if have == element:
        return value
    type = t.like(value.type, element)
    if t.widths[have] < t.widths[element]:
        if have == t.bf16 and t.parts(value.type)[0] >= 2:
            return convert_float(ctx, bf16_to_f32(ctx, value), element, toward_zero)
        return ctx.emit("llvm.fpext", type, (value,))
    if t.widths[have] == 16:  # between f16 and bf16
        return convert_float(ctx, ctx.emit("llvm.fpext", t.like(value.type, t.f32), (value,)), element, toward_zero)
    if not toward_zero:
        return ctx.emit("llvm.fptrunc", type, (value,))
    if have == t.f64:
        single = per_element(ctx, "nvvm.d2f.rz", intrinsic("llvm.nvvm.d2f.rz", t.f32), (value,), t.f32)
        return convert_float(ctx, single, element, True)
    if element == t.bf16:
        return per_element(ctx, "nvvm.f2bf16.rz", intrinsic("llvm.nvvm.f2bf16.rz", t.bf16), (value,), t.bf16)
    return per_element(ctx, "f2h.rz", f32_to_f16_toward_zero, (value,), t.f16)


def bf16_to_f32(ctx: LoweringContext, value: ir.Value) -> ir.Value:
    """A vector of bf16 as f32, taking both halves of each word apart in one instruction each."""
    t = ctx.types
    count = vectors.length(ctx, value)
    words = t.vector(count // 2, t.i32)
    packed = ctx.emit("llvm.bitcast", words, (value,))
    low = ctx.emit("llvm.shl", words, (packed, ctx.constant(words, 16)))
    high = ctx.emit("llvm.and", words, (packed, ctx.constant(words, 0xFFFF0000)))
    order = [half * (count // 2) + i for i in range(count // 2) for half in (0, 1)]
    return ctx.emit("llvm.bitcast", t.vector(count, t.f32), (vectors.shuffle(ctx, low, order, high),))


def f32_to_f16_toward_zero(ctx: LoweringContext, operands: list[ir.Value]) -> ir.Value:
    """One f32 truncated to f16 by the packed conversion, whose other half stays zero."""
    t = ctx.types
    pair = ctx.call_intrinsic("llvm.nvvm.ff2f16x2.rz", t.vector(2, t.f16), (ctx.constant(t.f32, 0.0), operands[0]))
    return vectors.extract(ctx, pair, 0)


# From 8 bits


def decode(ctx: LoweringContext, codes: ir.Value, format: Float8) -> ir.Value:
    """The values of a vector of codes, exactly: f16 where that is cheapest, else f32."""
    t = ctx.types
    count = vectors.length(ctx, codes)
    if format.infinity:  # the upper byte of an f16
        wide = ctx.emit("llvm.zext", t.vector(count, t.i16), (codes,))
        shifted = ctx.emit("llvm.shl", wide.type, (wide, ctx.constant(wide.type, 8)))
        return ctx.emit("llvm.bitcast", t.vector(count, t.f16), (shifted,))
    if format.native and ctx.facts.arch >= 89:
        return in_pairs(ctx, codes, f"cvt.rn.f16x2.{format.native}x2 $0, $1;", "=r,h", t.f16)
    type = t.vector(count, t.i32)
    wide = ctx.emit("llvm.zext", type, (codes,))
    magnitude = ctx.emit("llvm.and", type, (wide, ctx.constant(type, 0x7F)))
    sign = ctx.emit("llvm.shl", type, (ctx.emit("llvm.and", type, (wide, ctx.constant(type, 0x80))), ctx.constant(type, 24)))
    bits = ctx.emit("llvm.shl", type, (magnitude, ctx.constant(type, 23 - format.mantissa)))
    bits = ctx.emit("llvm.or", type, (bits, sign))
    floats = t.vector(count, t.f32)
    # the exponent field is off by the difference of the biases, also for subnormals
    scale = ctx.constant(floats, 2.0 ** (127 - format.bias))
    value = ctx.emit("llvm.fmul", floats, (ctx.emit("llvm.bitcast", floats, (bits,)), scale))
    if format == E4B15:
        return value
    tested = magnitude if format.signed_zero else wide
    is_nan = ctx.emit("llvm.icmp", t.vector(count, t.i1), (tested, ctx.constant(type, format.nan)), t.icmp("eq"))
    return ctx.emit("llvm.select", floats, (is_nan, ctx.constant(floats, math.nan), value))


def in_pairs(ctx: LoweringContext, vector: ir.Value, text: str, constraints: str, element: ir.Type) -> ir.Value:
    """Apply an instruction that converts two elements in one register to two elements of type `element`."""
    count, _ = ctx.types.parts(vector.type)

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        t = inner.types
        (values,) = arguments
        if count == 1:
            values = vectors.shuffle(inner, values, (0, 0))
        words = vectors.to_words(inner, values, 2 * t.width(values.type))
        result = t.int(2 * t.widths[element])
        converted = [inline_asm(inner, text, constraints, (word,), result, side_effects=False) for word in words]
        return vectors.slice_of(inner, vectors.from_words(inner, converted, 2 * len(words), element), 0, count)

    return ctx.helper(f"{text.split()[0]}.{count}", ctx.types.vector(count, element), (vector,), build)


# To 8 bits


def encode(ctx: LoweringContext, value: ir.Value, format: Float8, toward_zero: bool) -> ir.Value:
    """The codes of a vector of floats."""
    t = ctx.types
    element = t.parts(value.type)[1]
    if element == t.f64:
        value = narrow_to_odd(ctx, value) if not toward_zero else convert_float(ctx, value, t.f32, True)
        element = t.f32
    if format.native and ctx.facts.arch >= 89 and not toward_zero:
        if element == t.f16:
            return in_pairs(ctx, value, f"cvt.rn.satfinite.{format.native}x2.f16x2 $0, $1;", "=h,r", t.i8)
        return f32_pairs(ctx, convert_float(ctx, value, t.f32, False), format)
    return encode_bits(ctx, convert_float(ctx, value, t.f32, False), format, toward_zero)


def narrow_to_odd(ctx: LoweringContext, value: ir.Value) -> ir.Value:
    """f64 to f32, inexact results with the last bit set: rounding that again to fewer bits is right."""
    t = ctx.types
    count = vectors.length(ctx, value)
    single = convert_float(ctx, value, t.f32, True)
    back = ctx.emit("llvm.fpext", value.type, (single,))
    inexact = ctx.emit("llvm.fcmp", t.vector(count, t.i1), (back, value), {"predicate": t.int_attr(64, FCMP_UNE)})
    ints = t.vector(count, t.i32)
    odd = ctx.emit("llvm.or", ints, (ctx.emit("llvm.bitcast", ints, (single,)), ctx.emit("llvm.zext", ints, (inexact,))))
    return ctx.emit("llvm.bitcast", single.type, (odd,))


FCMP_UNE = 13  # LLVM::FCmpPredicate


def f32_pairs(ctx: LoweringContext, value: ir.Value, format: Float8) -> ir.Value:
    """f32 to an 8-bit format that PTX knows, two at a time."""
    count = vectors.length(ctx, value)
    text = f"cvt.rn.satfinite.{format.native}x2.f32 $0, $1, $2;"

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        t = inner.types
        scalars = vectors.unpack(inner, arguments[0])
        if count == 1:
            scalars.append(scalars[0])
        halves = zip(scalars[::2], scalars[1::2], strict=True)
        pairs = [inline_asm(inner, text, "=h,f,f", (high, low), t.i16, side_effects=False) for low, high in halves]
        codes = vectors.bitcast(inner, vectors.pack(inner, pairs), t.vector(2 * len(pairs), t.i8))
        return vectors.slice_of(inner, codes, 0, count)

    return ctx.helper(f"{text.split()[0]}.{count}", ctx.types.vector(count, ctx.types.i8), (value,), build)


def encode_bits(ctx: LoweringContext, value: ir.Value, format: Float8, toward_zero: bool) -> ir.Value:
    """f32 to any 8-bit format by integer arithmetic."""
    t = ctx.types
    count = vectors.length(ctx, value)
    ints, floats, flags = t.vector(count, t.i32), t.vector(count, t.f32), t.vector(count, t.i1)

    def i(number: int) -> ir.Value:
        return ctx.constant(ints, number)

    def emit(name: str, *operands: ir.Value) -> ir.Value:
        return ctx.emit(f"llvm.{name}", ints, operands)

    def test(predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return ctx.emit("llvm.icmp", flags, (a, b), t.icmp(predicate))

    bits = ctx.emit("llvm.bitcast", ints, (value,))
    magnitude = emit("and", bits, i(0x7FFFFFFF))
    sign = emit("and", emit("lshr", bits, i(24)), i(0x80))
    drop = 23 - format.mantissa
    rebased = emit("sub", magnitude, i((127 - format.bias) << 23))
    absolute = ctx.emit("llvm.bitcast", floats, (magnitude,))
    if toward_zero:
        normal = emit("ashr", rebased, i(drop))
        scaled = ctx.emit("llvm.fmul", floats, (absolute, ctx.constant(floats, 2.0 ** (format.bias - 1 + format.mantissa))))
        subnormal = ctx.emit("llvm.fptosi", ints, (scaled,))
    else:
        odd = emit("and", emit("lshr", rebased, i(drop)), i(1))
        normal = emit("ashr", emit("add", emit("add", rebased, i((1 << (drop - 1)) - 1)), odd), i(drop))
        # adding a number whose last bit weighs as much as the smallest subnormal rounds there, to nearest even
        magic = 2.0 ** (23 + 1 - format.bias - format.mantissa)
        moved = ctx.emit("llvm.fadd", floats, (absolute, ctx.constant(floats, magic)))
        subnormal = emit("and", ctx.emit("llvm.bitcast", ints, (moved,)), i(0xFF))
    is_small = test("ult", magnitude, i((127 - format.bias + 1) << 23))
    code = ctx.emit("llvm.select", ints, (is_small, subnormal, normal))
    code = ctx.emit("llvm.intr.umin", ints, (code, i(format.largest)))
    signed = emit("or", code, sign)
    if not format.signed_zero:
        signed = ctx.emit("llvm.select", ints, (test("eq", code, i(0)), code, signed))
    is_nan = test("ugt", magnitude, i(0x7F800000))
    return ctx.emit("llvm.trunc", t.vector(count, t.i8), (ctx.emit("llvm.select", ints, (is_nan, i(format.nan), signed)),))
