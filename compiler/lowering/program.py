"""Ops about the program and its launch: ids, clocks, hints, dependent launches, printing and assertions."""

from collections.abc import Sequence
from functools import partial

from mlir import ir

from tilewright.compiler.layouts import LinearLayout

from . import access, linear, vectors
from .branches import when
from .context import LoweringContext, source_line
from .registry import rule

AXES = "xyz"


def program_register(ctx: LoweringContext, name: str, axis: int) -> ir.Value:
    """A grid register ("ctaid" or "nctaid"). With clusters the program is the cluster, whose CTAs lie along x."""
    prefix = "cluster" if ctx.facts.num_ctas > 1 and axis == 0 else "cta"
    register = name.replace("cta", prefix)
    return ctx.once(f"{register} {axis}", lambda: ctx.emit(f"nvvm.read.ptx.sreg.{register}.{AXES[axis]}", ctx.types.i32))


@rule("tile.program_id")
def program_id(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [program_register(ctx, "ctaid", ir.IntegerAttr(op.attributes["axis"]).value)]


@rule("tile.num_programs")
def num_programs(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [program_register(ctx, "nctaid", ir.IntegerAttr(op.attributes["axis"]).value)]


@rule("tile.cluster_rank")
def cluster_rank(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.cluster_rank]


@rule("tile.globaltimer")
def globaltimer(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.emit("nvvm.read.ptx.sreg.globaltimer", ctx.types.i64)]


@rule("tile.smid")
def smid(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    return [ctx.emit("nvvm.read.ptx.sreg.smid", ctx.types.i32)]


def _needs_dependent_launches(ctx: LoweringContext) -> None:
    """Raise ValueError where the target has no dependent launches: LLVM would end the process."""
    if ctx.facts.arch < 90:
        raise ValueError(f"dependent launches need compute capability 9.0 or newer, and the target is sm_{ctx.facts.arch}")


@rule("tile.gdc_wait")
def gdc_wait(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    _needs_dependent_launches(ctx)
    ctx.call_intrinsic("llvm.nvvm.griddepcontrol.wait", None, ())
    return []


@rule("tile.gdc_launch")
def gdc_launch(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    _needs_dependent_launches(ctx)
    ctx.call_intrinsic("llvm.nvvm.griddepcontrol.launch.dependents", None, ())
    return []


@rule("tile.assume")
def assume(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    ctx.emit_void("llvm.intr.assume", ctx.operands(op), {"op_bundle_sizes": ctx.types.i32_array()})
    return []


@rule("tile.assert")
def assert_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    condition, *mask = ctx.operands(op)
    t = ctx.types
    failed = ctx.emit("llvm.xor", condition.type, (condition, ctx.constant(condition.type, 1)))
    if mask:
        failed = ctx.emit("llvm.and", condition.type, (failed, mask[0]))
    if t.parts(condition.type)[0]:
        failed = ctx.emit("llvm.intr.vector.reduce.or", t.i1, (failed,))
    file, line = source_line(op.location)
    message = ir.StringAttr(op.attributes["message"]).value
    function = ctx.module.declare("__assertfail", t.function(t.void, t.ptr, t.ptr, t.i32, t.ptr, t.i64))

    def fail() -> None:
        texts = [address_of(ctx, text) for text in (message, file, "kernel")]
        ctx.call(function, None, (texts[0], texts[1], ctx.i32(line), texts[2], ctx.constant(t.i64, 1)))

    when(ctx, failed, fail)
    return []


def address_of(ctx: LoweringContext, text: str) -> ir.Value:
    """Generic pointer to a zero-terminated string constant."""
    symbol = ctx.types.symbol(ctx.module.string(text))
    return ctx.emit("llvm.mlir.addressof", ctx.types.ptr, (), {"global_name": symbol})


@rule("tile.print")
def print_(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    """One line per element, from the thread that owns it: `pid (x, y, z) idx (i, j) prefix: value`."""
    prefix = ir.StringAttr(op.attributes["prefix"]).value
    signs = list(ir.DenseBoolArrayAttr(op.attributes["is_signed"])) if "is_signed" in op.attributes else []
    program = [program_register(ctx, "ctaid", axis) for axis in range(3)]
    operands = list(op.operands)
    if not operands:
        when(ctx, access.owner(ctx, None), lambda: printf(ctx, f"pid (%u, %u, %u) idx (){prefix}\n", program))
    for number, old in enumerate(operands):
        label = prefix + (f"(operand {number}) " if len(operands) > 1 else "")
        signed = number < len(signs) and signs[number]
        layout = ctx.layout(old) if isinstance(old.type, ir.RankedTensorType) else None
        print_elements = partial(print_lines, ctx, ctx.value(old), layout, program, label, signed, "hex" in op.attributes)
        when(ctx, access.owner(ctx, layout), print_elements)
    return []


def print_lines(
    ctx: LoweringContext, value: ir.Value, layout: LinearLayout | None, program: list[ir.Value], label: str, signed: bool, hexadecimal: bool
) -> None:
    """Print each element of `value`; `layout` None stands for a scalar."""
    rank = layout.rank if layout else 0
    free = layout.free_masks()["register"] if layout else 0
    columns = [vectors.unpack(ctx, linear.coordinates(ctx, layout, d)) for d in range(rank)]
    places = ", ".join(["%d"] * rank)
    for register, element in enumerate(vectors.unpack(ctx, value) if layout else [value]):
        if not register & free:
            directive, printable = printable_value(ctx, element, signed, hexadecimal)
            arguments = [*program, *(column[register] for column in columns), printable]
            printf(ctx, f"pid (%u, %u, %u) idx ({places}){label}{directive}\n", arguments)


def printable_value(ctx: LoweringContext, value: ir.Value, signed: bool, hexadecimal: bool) -> tuple[str, ir.Value]:
    """(printf directive, value widened as C does for variadic arguments)."""
    t = ctx.types
    type = value.type
    if type in t.pointers:
        return "%p", ctx.emit("llvm.ptrtoint", t.i64, (value,))
    bits = t.widths[type]
    if type in t.floats and hexadecimal:
        value = ctx.emit("llvm.bitcast", t.int(bits), (value,))
    elif type in t.floats:
        return "%f", value if type == t.f64 else ctx.emit("llvm.fpext", t.f64, (value,))
    wide = t.i64 if bits == 64 else t.i32
    if bits < 32:
        value = ctx.emit("llvm.sext" if signed and bits > 1 and not hexadecimal else "llvm.zext", wide, (value,))
    length = "ll" if bits == 64 else ""
    if hexadecimal:
        return f"0x%0{max(bits // 4, 1)}{length}x", value
    return f"%{length}{'d' if signed else 'u'}", value


def printf(ctx: LoweringContext, text: str, arguments: Sequence[ir.Value]) -> None:
    """Call vprintf with arguments of 4 or 8 bytes, each at its natural alignment."""
    t = ctx.types
    places, size = [], 0
    for argument in arguments:
        width = t.widths[argument.type] // 8
        size = -(-size // width) * width
        places.append(size)
        size += width
    words = max(1, -(-size // 8))
    attrs = {"elem_type": ir.TypeAttr.get(t.i64), "alignment": t.int_attr(64, 8)}
    buffer = ctx.once(f"print buffer {words}", lambda: ctx.emit("llvm.alloca", t.ptr, (ctx.i32(words),), attrs))
    for argument, place in zip(arguments, places, strict=True):
        address = ctx.emit("llvm.getelementptr", t.ptr, (buffer,), t.const_gep_attrs(t.i8, place)) if place else buffer
        ctx.emit_void("llvm.store", (argument, address))
    function = ctx.module.declare("vprintf", t.function(t.i32, t.ptr, t.ptr))
    ctx.call(function, t.i32, (address_of(ctx, text), buffer))
