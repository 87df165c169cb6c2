"""`tilegpu.wgmma` and `tilegpu.wgmma_wait`: asynchronous matrix multiplication by warpgroups on sm_90.

Before: the accumulator has the layout `wgmma_accumulator`, B is in a buffer that wgmma can read (`matrix_descriptor`), A is in such a
buffer or in registers as `wgmma_operand_a`; writes to the buffers were made visible by `fence_async` and a barrier.
After: each op is one call of a helper function with one inline assembly block: fence, all instructions of the op, commit. The accumulator
is one vector value; a `wgmma_wait` passes the values through a block of its own, so that no use can move above it.

ptxas keeps wgmma asynchronous only if it can follow the registers in flight: nothing else may stand in a block between fence and commit.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts import LinearLayout, f2
from tilewright.compiler.layouts.descriptors import MatrixDescriptor, matrix_descriptor
from tilewright.dialects import tilegpu

from . import linear, vectors
from .asm import inline_asm, inline_asm_multi
from .context import LoweringContext
from .mma import accumulator_letter, accumulator_name, accumulator_words, operand_name
from .registry import rule

WARPS_PER_GROUP_BITS = 2
#: Registers of A that a thread gives to one instruction: 64 rows of 32 bytes over 128 threads.
A_WORDS = 4
_ADDRESS_MASK = 0x3FFF


@dataclass(frozen=True)
class Steps:
    """The instructions of one op: for each the accumulator's first register word, and the parts of A and B that it takes.

    A part of an operand in shared memory is what is added to its descriptor; a part of A in registers is its first 32-bit word.
    """

    instructions: tuple[tuple[int, int, int], ...]
    blocks: int
    accumulator_words: int
    operand_words: int


def _block_starts(extent: int, total: int, columns: tuple[int, ...]) -> list[int]:
    """The first indices along M or N of the instructions that one warpgroup issues: those that its registers reach."""
    reached = set(linear.images(columns))
    return sorted({x // extent * extent for x in reached if x < total})


@rule("tilegpu.wgmma")
def wgmma(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    old_a, old_b, old_acc = list(op.operands)[:3]
    use_acc = ctx.value(op.operands[3]) if len(op.operands) > 3 else None
    a_in_registers = isinstance(old_a.type, ir.RankedTensorType)
    instr = tuple(ir.DenseI32ArrayAttr(op.attributes["instr"]))
    acc_layout = ctx.layout(old_acc)
    element_a = old_a.type.element_type if a_in_registers else tilegpu.buffer_info(old_a.type)[1]
    element_b = tilegpu.buffer_info(old_b.type)[1]
    bits = ctx.types.width(ctx.module.convert(element_b))
    names = (operand_name(element_a, "a_unsigned" in op.attributes), operand_name(element_b, "b_unsigned" in op.attributes))
    desc_b = _descriptor(old_b, 1, instr[1], bits)
    desc_a = None if a_in_registers else _descriptor(old_a, 0, instr[0], bits)
    depth = tilegpu.buffer_info(old_b.type)[0][0]
    acc = ctx.value(old_acc)
    acc_name = accumulator_name(old_acc.type.element_type)
    starts_from_zero = use_acc is None and _is_zero(old_acc)
    steps = plan_steps(acc_layout, instr, depth, ctx.types.width(acc.type), desc_a, desc_b)
    first = "zero" if starts_from_zero else "always" if use_acc is None else "flag"
    body, constraints = _assembly(steps, instr, names, acc_name, desc_a, desc_b, first)
    operands = [] if starts_from_zero else [acc]
    operands.append(ctx.value(old_a) if a_in_registers else _start(ctx, ctx.value(old_a), desc_a, acc_layout, 0))
    operands.append(_start(ctx, ctx.value(old_b), desc_b, acc_layout, 1))
    if use_acc is not None:
        operands.append(ctx.emit("llvm.zext", ctx.types.i32, (use_acc,)))
    key = "wgmma." + hashlib.sha1(f"{body}{constraints}{acc.type}{operands[-2].type}".encode()).hexdigest()[:16]

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        rest = list(arguments)
        words = [] if starts_from_zero else list(accumulator_words(inner, rest.pop(0)))
        word_types = [inner.types.i32 if acc_name in ("f16", "s32") else inner.types.f32] * steps.accumulator_words
        left = rest.pop(0)
        left_words = vectors.to_words(inner, left) if a_in_registers else [left]
        outs = inline_asm_multi(inner, body, constraints, (*words, *left_words, *rest), word_types)
        return vectors.from_words(inner, outs, *inner.types.parts(acc.type))

    return [ctx.helper(key, acc.type, operands, build)]


def _descriptor(buffer: ir.Value, outer_dim: int, extent: int, bits: int) -> MatrixDescriptor:
    found = matrix_descriptor(shared_of(buffer.type), outer_dim, extent, bits)
    if found is None:
        raise ValueError(f"wgmma cannot read an operand of type {buffer.type}")
    return found


def _is_zero(value: ir.Value) -> bool:
    """Whether an accumulator is the constant zero, so that the first instruction need not read it."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "arith.constant":
        return False
    attr = owner.attributes["value"]
    if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
        return False
    return ir.FloatAttr(attr.get_splat_value()).value == 0.0 if not isinstance(attr, ir.DenseIntElementsAttr) else attr[0] == 0


@lru_cache(maxsize=512)
def plan_steps(
    acc: LinearLayout,
    instr: tuple[int, int, int],
    depth: int,
    acc_bits: int,
    desc_a: MatrixDescriptor | None,
    desc_b: MatrixDescriptor,
) -> Steps:
    """List the instructions of an op, K outermost. Raises ValueError if the accumulator's registers are not in instruction order."""
    m, n, k = instr
    rows, cols = acc.out_sizes
    registers = acc.column("register")
    row_starts = _block_starts(m, rows, tuple(c >> acc.shifts[0] for c in registers))
    col_starts = _block_starts(n, cols, tuple(c & (cols - 1) for c in registers))
    words_per_instruction = n // 2 * acc_bits // 32
    k_steps = max(1, depth // k)
    images = linear.images(registers)
    for number, (row, col) in enumerate((r, c) for r in row_starts for c in col_starts):
        first = number * (n // 2)
        if first >= len(images) or images[first] != acc.pack((row, col)):
            raise ValueError(f"{acc} is no accumulator of wgmma m{m}n{n}")
    a_words = A_WORDS if desc_a is None else 0
    instructions = []
    for step in range(k_steps):
        for i, row in enumerate(row_starts):
            left = (i * k_steps + step) * a_words if desc_a is None else desc_a.offset(row, step * k) >> 4
            for j, col in enumerate(col_starts):
                acc_word = (i * len(col_starts) + j) * words_per_instruction
                instructions.append((acc_word, left, desc_b.offset(col, step * k) >> 4))
    blocks = len(row_starts) * len(col_starts)
    return Steps(tuple(instructions), blocks, blocks * words_per_instruction, len(row_starts) * k_steps * a_words)


@lru_cache(maxsize=256)
def _assembly(
    steps: Steps,
    instr: tuple[int, int, int],
    names: tuple[str, str],
    acc_name: str,
    desc_a: MatrixDescriptor | None,
    desc_b: MatrixDescriptor,
    first: str,
) -> tuple[str, str]:
    """Return (text, constraints).

    `first` says what the first instruction of each block does with the accumulator: "zero" ignores it, "always" adds to it, "flag" asks the
    last operand.
    """
    count = steps.accumulator_words
    at_a = count if first == "zero" else 2 * count
    operands_a = steps.operand_words or 1
    at_b = at_a + operands_a
    m, n, k = instr
    lines = ["{", ".reg .b64 da, db;"]
    if first == "flag":
        lines += [".reg .pred first;", f"setp.ne.b32 first, ${at_b + 1}, 0;"]
    initial = {"zero": "0", "always": "1", "flag": "first"}[first]
    lines.append("wgmma.fence.sync.aligned;")
    integer, half = acc_name == "s32", names[0] in ("f16", "bf16")
    tail = "" if integer else ", 1, 1"
    if half:
        tail += ("" if desc_a is None else f", {int(desc_a.mn_major)}") + f", {int(desc_b.mn_major)}"
    width = count // steps.blocks
    started: set[int] = set()
    for acc, left, right in steps.instructions:
        scale = "1" if acc in started else initial
        started.add(acc)
        d = "{" + ",".join(f"${acc + i}" for i in range(width)) + "}"
        if desc_a is None:
            a = "{" + ",".join(f"${at_a + left + i}" for i in range(A_WORDS)) + "}"
        else:
            a = "da"
            lines.append(f"add.s64 da, ${at_a}, {left};")
        lines.append(f"add.s64 db, ${at_b}, {right};")
        lines.append(f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{acc_name}.{names[0]}.{names[1]} {d}, {a}, db, {scale}{tail};")
    lines += ["wgmma.commit_group.sync.aligned;", "}"]
    letter = accumulator_letter(acc_name)
    constraints = [f"={letter}"] * count
    if first != "zero":
        constraints += [str(i) for i in range(count)]
    constraints += ["l"] if desc_a is not None else ["r"] * steps.operand_words
    constraints += ["l"] + (["r"] if first == "flag" else []) + ["~{memory}"]
    return "\n".join(lines), ",".join(constraints)


def _start(ctx: LoweringContext, base: ir.Value, desc: MatrixDescriptor, acc: LinearLayout, dim: int) -> ir.Value:
    """The descriptor (i64) of the warpgroup's first part of an operand; `dim` is the accumulator's dimension that it runs along."""
    i32, i64 = ctx.types.i32, ctx.types.i64
    address = ctx.emit("llvm.ptrtoint", i32, (base,))
    columns = [f2.apply(desc.outer, c) if c else 0 for c in linear.dim_columns(acc, "warp", dim)[WARPS_PER_GROUP_BITS:]]
    if any(columns):
        offset = ctx.once(f"warpgroup offset {columns}", lambda: linear.apply_columns(ctx, ctx.warpgroup_id, columns))
        address = ctx.emit("llvm.add", i32, (address, offset))
    field = ctx.emit("llvm.and", i32, (ctx.emit("llvm.lshr", i32, (address, ctx.i32(4))), ctx.i32(_ADDRESS_MASK)))
    wide = ctx.emit("llvm.zext", i64, (field,))
    return ctx.emit("llvm.or", i64, (wide, ctx.constant(i64, desc.bits())))


@rule("tilegpu.wgmma_wait")
def wgmma_wait(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    values = ctx.operands(op)
    pending = [i for i, v in enumerate(op.operands) if isinstance(v.type, ir.RankedTensorType)]
    number = ir.IntegerAttr(op.attributes["num"]).value
    text = f"wgmma.wait_group.sync.aligned {number};"
    if not pending:
        inline_asm(ctx, text, "~{memory}", (), None)
        return values
    waited = [values[i] for i in pending]
    # ptxas moves a wait up past whatever it does not depend on, so that nothing runs beside the wgmmas. Other values that pass through
    # the wait should be computed before it: a volatile load holds it there, if no branch does.
    free = "tilegpu.behind_branch" in op.attributes
    held = [ctx.shared_base] if not free and any(not _may_be_pending(op.operands[i]) for i in pending) else []
    key = f"wgmma_wait.{number}." + ".".join(str(v.type).replace(" ", "") for v in [*waited, *held])
    result_type = waited[0].type if len(waited) == 1 else ctx.types.struct(*[v.type for v in waited])

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        arguments, base = arguments[: len(waited)], arguments[len(waited) :]
        words = [list(_words(inner, v)) for v in arguments]
        flat = [w for group in words for w in group]
        letters = ["r" if w.type == inner.types.i32 else "f" for w in flat]
        constraints = ",".join([f"={c}" for c in letters] + [str(i) for i in range(len(flat))] + ["r"] * len(base) + ["~{memory}"])
        hold = f"{{ .reg .b32 unused; ld.volatile.shared.b32 unused, [${2 * len(flat)}]; }} " if base else ""
        outs = iter(inline_asm_multi(inner, hold + text, constraints, [*flat, *base], [w.type for w in flat]))
        results = [
            vectors.from_words(inner, [next(outs) for _ in group], *inner.types.parts(v.type))
            for group, v in zip(words, arguments, strict=True)
        ]
        if len(results) == 1:
            return results[0]
        packed = inner.poison(result_type)
        for i, value in enumerate(results):
            packed = inner.emit("llvm.insertvalue", result_type, (packed, value), inner.types.position(i))
        return packed

    out = ctx.helper(key, result_type, [*waited, *held], build)
    for position, i in enumerate(pending):
        values[i] = out if len(pending) == 1 else ctx.emit("llvm.extractvalue", waited[position].type, (out,), ctx.types.position(position))
    return values


def _may_be_pending(value: ir.Value) -> bool:
    """Whether a value that passes through a wait is a wgmma's accumulator, as far as its block shows."""
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.operation.name in ("tilegpu.wgmma", "scf.for", "scf.while", "scf.if")


def _words(ctx: LoweringContext, vector: ir.Value) -> list[ir.Value]:
    """The 32-bit registers of a value that passes through a wait."""
    element = ctx.types.parts(vector.type)[1]
    return vectors.unpack(ctx, vector) if element in (ctx.types.f32, ctx.types.i32) else vectors.to_words(ctx, vector)
