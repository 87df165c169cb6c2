"""Arithmetic, comparison, selection and casts: `arith`, `math` and the elementwise ops of `tile`.

One LLVM op acts on all elements of a thread where LLVM has the operation for vectors. What only exists for scalars (approximate PTX
instructions, libdevice functions) goes through a helper function that takes the vector apart, emitted once per function and length.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce

from mlir import ir

from tilewright.compiler.layouts import LinearLayout
from tilewright.dialects import tile

from . import vectors
from .context import LoweringContext
from .float8 import encode_constant, float8_format
from .registry import rule
from .types import scalar_type

LOG2_E = 1.4426950408889634
#: Unit attribute of a product with a broadcast: its elements are one so often that multiplying is worth a branch.
OFTEN_ONE = "tilegpu.often_one"
CHUNK = 8  # elements that a helper function of scalar code takes

SAME_OP = {
    "arith.addi": "llvm.add",
    "arith.subi": "llvm.sub",
    "arith.divsi": "llvm.sdiv",
    "arith.divui": "llvm.udiv",
    "arith.remsi": "llvm.srem",
    "arith.remui": "llvm.urem",
    "arith.andi": "llvm.and",
    "arith.ori": "llvm.or",
    "arith.xori": "llvm.xor",
    "arith.shli": "llvm.shl",
    "arith.shrsi": "llvm.ashr",
    "arith.shrui": "llvm.lshr",
    "arith.maxsi": "llvm.intr.smax",
    "arith.minsi": "llvm.intr.smin",
    "arith.maxui": "llvm.intr.umax",
    "arith.minui": "llvm.intr.umin",
    "arith.negf": "llvm.fneg",
    "arith.remf": "llvm.frem",
    "arith.maxnumf": "llvm.intr.maxnum",
    "arith.minnumf": "llvm.intr.minnum",
    "arith.maximumf": "llvm.intr.maximum",
    "arith.minimumf": "llvm.intr.minimum",
    "arith.select": "llvm.select",
    "arith.extsi": "llvm.sext",
    "arith.extui": "llvm.zext",
    "arith.trunci": "llvm.trunc",
    "arith.extf": "llvm.fpext",
    "arith.truncf": "llvm.fptrunc",
    "arith.sitofp": "llvm.sitofp",
    "arith.uitofp": "llvm.uitofp",
    "arith.fptosi": "llvm.fptosi",
    "arith.fptoui": "llvm.fptoui",
    "math.absf": "llvm.intr.fabs",
    "math.floor": "llvm.intr.floor",
    "math.ceil": "llvm.intr.ceil",
    "math.trunc": "llvm.intr.trunc",
    "math.roundeven": "llvm.intr.roundeven",
    "math.copysign": "llvm.intr.copysign",
    "math.ctpop": "llvm.intr.ctpop",
}


@rule(*SAME_OP)
def same_op(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Ops with an LLVM counterpart that takes vectors."""
    return [ctx.emit(SAME_OP[op.name], ctx.type(op.results[0].type), ctx.operands(op))]


CONTRACTED = {"arith.addf": "llvm.fadd", "arith.subf": "llvm.fsub", "arith.mulf": "llvm.fmul"}


@rule(*CONTRACTED)
def contracted(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Float arithmetic that may fuse into fma."""
    attrs = ctx.types.fastmath("contract") if ctx.facts.fp_fusion else None
    result = ctx.type(op.results[0].type)
    if OFTEN_ONE in op.attributes:
        return [_unless_one(ctx, op, lambda: ctx.emit(CONTRACTED[op.name], result, ctx.operands(op), attrs))]
    return [ctx.emit(CONTRACTED[op.name], result, ctx.operands(op), attrs)]


def _unless_one(ctx: LoweringContext, op: ir.Operation, multiply: Callable[[], ir.Value]) -> ir.Value:
    """Multiply, unless all factors that a warp has are one: the second operand is a broadcast."""
    product, factors = ctx.operands(op)[0], ctx.value(op.operands[1].owner.operation.operands[0])
    i1, one = ctx.types.i1, ctx.constant(ctx.types.parts(factors.type)[1], 1.0)
    same = [ctx.emit("llvm.fcmp", i1, (factor, one), ctx.types.fcmp("oeq")) for factor in vectors.unpack(ctx, factors)]
    mine = reduce(lambda a, b: ctx.emit("llvm.and", i1, (a, b)), same)
    everywhere = ctx.call_intrinsic("llvm.nvvm.vote.all.sync", i1, (ctx.i32(-1), mine))
    inside, after = ctx.new_block(), ctx.new_block(product.type)
    ctx.cond_branch(everywhere, after, inside, (product,))
    ctx.enter(inside)
    ctx.branch(after, (multiply(),))
    ctx.enter(after)
    return after.arguments[0]


@rule("arith.muli")
def muli(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """The low half of the product that `tile.mulhi` made of the same operands, if it did: one instruction gives both."""
    a, b = ctx.operands(op)
    halves = ctx.scalars.get((a, b))
    if halves is not None:
        return [vectors.shuffle(ctx, halves, range(0, vectors.length(ctx, halves), 2))]
    return [ctx.emit("llvm.mul", a.type, (a, b))]


@rule("math.fma")
def fma(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.emit("llvm.intr.fma", ctx.type(op.results[0].type), ctx.operands(op))]


@rule("math.absi")
def absi(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    attrs = {"is_int_min_poison": ctx.types.int_attr(1, 0)}
    return [ctx.emit("llvm.intr.abs", ctx.type(op.results[0].type), ctx.operands(op), attrs)]


@rule("arith.cmpi")
def cmpi(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Integer comparison, done once for the registers that axis info knows to agree: `i < n` with n a multiple of 16."""
    operands, type = ctx.operands(op), ctx.type(op.results[0].type)
    attrs = {"predicate": op.attributes["predicate"]}  # arith and llvm number their predicates alike
    if isinstance(op.results[0].type, ir.RankedTensorType):
        layout = ctx.layout(op.results[0])
        leaders, sources = constant_runs(layout, ctx.axis_info.get(op.results[0]).constancy)
        if len(leaders) < len(sources):
            operands = [vectors.shuffle(ctx, v, leaders) for v in operands]
            compared = ctx.emit("llvm.icmp", ctx.types.vector(len(leaders), ctx.types.i1), operands, attrs)
            return [vectors.shuffle(ctx, compared, sources)]
    return [ctx.emit("llvm.icmp", type, operands, attrs)]


@lru_cache(maxsize=256)
def constant_runs(layout: LinearLayout, constancy: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(One register of each run of registers that hold one value, the run of each register), where aligned runs of `constancy[d]` elements
    along each dimension d do."""
    within = sum((min(run, size) - 1) << shift for run, size, shift in zip(constancy, layout.out_sizes, layout.shifts, strict=True))
    column = layout.column("register")
    equal = sum(1 << bit for bit, image in enumerate(column) if not image & ~within)
    leaders = tuple(r for r in range(1 << len(column)) if not r & equal)
    position = {r: i for i, r in enumerate(leaders)}
    return leaders, tuple(position[r & ~equal] for r in range(1 << len(column)))


@rule("arith.cmpf")
def cmpf(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.emit("llvm.fcmp", ctx.type(op.results[0].type), ctx.operands(op), {"predicate": op.attributes["predicate"]})]


@rule("ub.poison")
def poison(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.poison(ctx.type(op.results[0].type))]


@rule("arith.constant")
def constant(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    attr = op.attributes["value"]
    type = ctx.type(op.results[0].type)
    count, element = ctx.types.parts(type)
    if isinstance(attr, ir.DenseElementsAttr):
        if not attr.is_splat:
            raise ValueError("only splat tensor constants have a lowering")
        attr = attr.get_splat_value()
    if element == ctx.types.i8 and not isinstance(attr, ir.IntegerAttr):
        return [ctx.constant(type, encode_constant(attr.value, float8_format(attr.type)))]
    if isinstance(attr, ir.IntegerAttr) and attr.type != element:
        attr = ir.IntegerAttr.get(element, attr.value)
    return [ctx.constant_of(type, ir.DenseElementsAttr.get_splat(type, attr) if count else attr)]


@rule("arith.bitcast", "tile.bitcast")
def bitcast(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (source,) = ctx.operands(op)
    return [vectors.bitcast(ctx, source, ctx.type(op.results[0].type))]


@rule("arith.index_cast", "arith.index_castui")
def index_cast(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (source,) = ctx.operands(op)
    type = ctx.type(op.results[0].type)
    have, want = ctx.types.width(source.type), ctx.types.width(type)
    if have == want:
        return [source]
    if have > want:
        return [ctx.emit("llvm.trunc", type, (source,))]
    return [ctx.emit("llvm.sext" if op.name == "arith.index_cast" else "llvm.zext", type, (source,))]


@rule("tile.addptr")
def addptr(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    pointer, offset = ctx.operands(op)
    type = op.results[0].type
    pointee = memory_type(ctx, tile.pointee(type.element_type if isinstance(type, ir.RankedTensorType) else type))
    return [ctx.emit("llvm.getelementptr", pointer.type, (pointer, offset), ctx.types.gep_attrs(pointee))]


def memory_type(ctx: LoweringContext, element: ir.Type) -> ir.Type:
    """The LLVM type that an element has in memory: a boolean takes a byte."""
    type = scalar_type(element)
    return ctx.types.i8 if type == ctx.types.i1 else type


@rule("tile.ptr_to_int")
def ptr_to_int(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.emit("llvm.ptrtoint", ctx.type(op.results[0].type), ctx.operands(op))]


@rule("tile.int_to_ptr")
def int_to_ptr(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.emit("llvm.inttoptr", ctx.type(op.results[0].type), ctx.operands(op))]


# Scalar functions, element by element


ScalarFunction = Callable[[LoweringContext, Sequence[ir.Value]], ir.Value]


def per_element(ctx: LoweringContext, key: str, function: ScalarFunction, operands: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    """Apply `function(ctx, scalars) -> scalar` of type `element` to each element; `key` names the function.

    Long vectors go through one helper function in chunks, which takes a fraction of the ops.
    """
    count, _ = ctx.types.parts(operands[0].type)
    if count == 0:
        return function(ctx, operands)
    if count > CHUNK:
        parts = [[vectors.slice_of(ctx, v, start, CHUNK) for v in operands] for start in range(0, count, CHUNK)]
        return vectors.concat(ctx, [per_element(ctx, key, function, part, element) for part in parts])

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        columns = [vectors.unpack(inner, a) for a in arguments]
        return vectors.pack(inner, [function(inner, row) for row in zip(*columns)])

    return ctx.helper(f"{key}.{count}", ctx.types.vector(count, element), operands, build)


def intrinsic(name: str, result: ir.Type) -> ScalarFunction:
    """The scalar function that calls the LLVM intrinsic `name`."""

    def call(ctx: LoweringContext, operands: Sequence[ir.Value]) -> ir.Value:
        return ctx.call_intrinsic(name, result, operands)

    return call


def libdevice(symbol: str, result: ir.Type, params: Sequence[ir.Type]) -> ScalarFunction:
    """The scalar function that calls `symbol` of libdevice or of a library that the user names."""

    def call(ctx: LoweringContext, operands: Sequence[ir.Value]) -> ir.Value:
        ctx.module.declare(symbol, ctx.types.function(result, *params))
        return ctx.call(symbol, result, operands)

    return call


def apply_intrinsic(ctx: LoweringContext, name: str, operands: Sequence[ir.Value]) -> ir.Value:
    """The intrinsic `name`, whose result has the type of its operands, on each element."""
    element = ctx.types.parts(operands[0].type)[1]
    return per_element(ctx, name.removeprefix("llvm."), intrinsic(name, element), operands, element)


def apply_libdevice(ctx: LoweringContext, symbol: str, operands: Sequence[ir.Value], result: ir.Type) -> ir.Value:
    """The library function `symbol` on each element; `result` is the type of one result."""
    params = [ctx.types.parts(v.type)[1] for v in operands]
    return per_element(ctx, f"{symbol}.elements", libdevice(symbol, result, params), operands, result)


LIBDEVICE = {
    f"math.{name}": f"__nv_{name}"
    for name in (
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "atan2"),
        *("erf", "erfc", "log", "log2", "log10", "log1p", "expm1", "cbrt", "round"),
    )
} | {"math.powf": "__nv_pow"}


@rule(*LIBDEVICE)
def libdevice_op(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [call_libdevice_math(ctx, LIBDEVICE[op.name], ctx.operands(op))]


def call_libdevice_math(ctx: LoweringContext, name: str, operands: Sequence[ir.Value]) -> ir.Value:
    """The libdevice function `name` (f64) or `name` + "f" (f32)."""
    element = ctx.types.parts(operands[0].type)[1]
    return apply_libdevice(ctx, name + ("f" if element == ctx.types.f32 else ""), operands, element)


def is_f32(ctx: LoweringContext, value: ir.Value) -> bool:
    return ctx.types.parts(value.type)[1] == ctx.types.f32


@rule("math.exp2")
def exp2(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (x,) = ctx.operands(op)
    if is_f32(ctx, x):
        return [apply_intrinsic(ctx, "llvm.nvvm.ex2.approx.ftz.f", (x,))]
    return [call_libdevice_math(ctx, "__nv_exp2", (x,))]


@rule("math.exp")
def exp(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (x,) = ctx.operands(op)
    if is_f32(ctx, x):
        scaled = ctx.emit("llvm.fmul", x.type, (x, ctx.constant(x.type, LOG2_E)))
        return [apply_intrinsic(ctx, "llvm.nvvm.ex2.approx.ftz.f", (scaled,))]
    return [call_libdevice_math(ctx, "__nv_exp", (x,))]


@rule("math.sqrt")
def sqrt(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (x,) = ctx.operands(op)
    if is_f32(ctx, x):
        return [apply_intrinsic(ctx, "llvm.nvvm.sqrt.approx.ftz.f", (x,))]
    return [ctx.emit("llvm.intr.sqrt", x.type, (x,))]


@rule("math.rsqrt")
def rsqrt(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    (x,) = ctx.operands(op)
    if is_f32(ctx, x):
        return [apply_intrinsic(ctx, "llvm.nvvm.rsqrt.approx.ftz.f", (x,))]
    return [call_libdevice_math(ctx, "__nv_rsqrt", (x,))]


@rule("arith.divf")
def divf(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """Division; in f32 to 2 ulp over the full range, with one reciprocal for the registers that axis info knows to share their divisor."""
    dividend, divisor = ctx.operands(op)
    if not is_f32(ctx, dividend):
        return [ctx.emit("llvm.fdiv", dividend.type, (dividend, divisor))]
    if isinstance(op.results[0].type, ir.RankedTensorType):
        leaders, sources = constant_runs(ctx.layout(op.results[0]), ctx.axis_info.get(op.operands[1]).constancy)
        if len(leaders) < len(sources):
            scale, reciprocal = scaled_reciprocal(ctx, vectors.shuffle(ctx, divisor, leaders))
            scaled = ctx.emit("llvm.fmul", dividend.type, (dividend, vectors.shuffle(ctx, scale, sources)))
            return [ctx.emit("llvm.fmul", dividend.type, (scaled, vectors.shuffle(ctx, reciprocal, sources)))]
    return [apply_intrinsic(ctx, "llvm.nvvm.div.full", (dividend, divisor))]


def scaled_reciprocal(ctx: LoweringContext, divisor: ir.Value) -> tuple[ir.Value, ir.Value]:
    """(s, r) such that `(x * s) * r` has the bits of `div.full.f32 x, divisor`: s keeps the divisor's reciprocal a normal number."""
    type = divisor.type
    truth = ctx.types.like(type, ctx.types.i1)
    size = ctx.emit("llvm.intr.fabs", type, (divisor,))
    large = ctx.emit("llvm.fcmp", truth, (size, ctx.constant(type, 2.0**126)), ctx.types.fcmp("ogt"))
    small = ctx.emit("llvm.fcmp", truth, (size, ctx.constant(type, 2.0**-126)), ctx.types.fcmp("olt"))
    scale = ctx.emit("llvm.select", type, (small, ctx.constant(type, 2.0**24), ctx.constant(type, 1.0)))
    scale = ctx.emit("llvm.select", type, (large, ctx.constant(type, 0.25), scale))
    scaled = ctx.emit("llvm.fmul", type, (divisor, scale))
    return scale, apply_intrinsic(ctx, "llvm.nvvm.rcp.approx.ftz.f", (scaled,))


@rule("tile.div_rn")
def div_rn(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    operands = ctx.operands(op)
    return [ctx.emit("llvm.fdiv", operands[0].type, operands)]


@rule("tile.sqrt_rn")
def sqrt_rn(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [apply_intrinsic(ctx, "llvm.nvvm.sqrt.rn.f", ctx.operands(op))]


@rule("tile.clampf")
def clampf(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    x, low, high = ctx.operands(op)
    suffix = "imum" if "propagate_nan" in op.attributes else "num"
    raised = ctx.emit(f"llvm.intr.max{suffix}", x.type, (x, low))
    return [ctx.emit(f"llvm.intr.min{suffix}", x.type, (raised, high))]


@rule("tile.mulhi")
def mulhi(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """The high half of the product. That of 32-bit vectors is taken as a half, not by a shift: LLVM turns shifts into `mul.hi`, and a
    `mul.lo` of the same operands would be a second multiplication."""
    a, b = ctx.operands(op)
    signed = "is_signed" in op.attributes
    bits = ctx.types.width(a.type)
    if bits == 64:
        return [apply_intrinsic(ctx, "llvm.nvvm.mulhi.ll" if signed else "llvm.nvvm.mulhi.ull", (a, b))]
    wide = ctx.types.like(a.type, ctx.types.int(2 * bits))
    extend = "llvm.sext" if signed else "llvm.zext"
    product = ctx.emit("llvm.mul", wide, (ctx.emit(extend, wide, (a,)), ctx.emit(extend, wide, (b,))))
    count, element = ctx.types.parts(a.type)
    if bits != 32 or not count:
        return [ctx.emit("llvm.trunc", a.type, (ctx.emit("llvm.lshr", wide, (product, ctx.constant(wide, bits))),))]
    halves = ctx.scalars[a, b] = ctx.scalars[b, a] = vectors.bitcast(ctx, product, ctx.types.vector(2 * count, element))
    return [vectors.shuffle(ctx, halves, range(1, 2 * count, 2))]


@rule("tile.extern_call")
def extern_call(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    symbol = ir.StringAttr(op.attributes["symbol"]).value
    result = ctx.types.parts(ctx.type(op.results[0].type))[1]
    return [apply_libdevice(ctx, symbol, ctx.operands(op), result)]
