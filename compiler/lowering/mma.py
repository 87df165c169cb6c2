"""`tilegpu.mma`: one mma.sync per instruction tile, all of an op in one inline assembly block.

Before: operands and accumulator have the layouts `mma_operand` and `mma_accumulator` of the same warps, and precision is one that the
instruction has (decompositions of fp32 are done by then). After: the block holds all instructions of the op, K outermost, so that
neighbouring ones do not wait for each other's accumulator; ptxas schedules inside it as it likes. The block counts as having side effects,
or LLVM might sink it into a branch that not all threads take.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, mma_accumulator, mma_operand

from . import linear, vectors
from .asm import inline_asm_multi
from .context import LoweringContext
from .registry import rule

#: PTX name of an operand's element type.
_OPERAND_NAMES = {
    ir.F16Type: "f16",
    ir.BF16Type: "bf16",
    ir.F32Type: "tf32",
    ir.F64Type: "f64",
    ir.Float8E4M3FNType: "e4m3",
    ir.Float8E5M2Type: "e5m2",
}


def operand_name(element: ir.Type, unsigned: bool = False) -> str:
    """Return the PTX name of a matrix operand's element type. Raises ValueError if matrix instructions do not take it."""
    if isinstance(element, ir.IntegerType) and element.width == 8:
        return "u8" if unsigned else "s8"
    for kind, name in _OPERAND_NAMES.items():
        if isinstance(element, kind):
            return name
    raise ValueError(f"no matrix instruction takes {element}")


def accumulator_name(element: ir.Type) -> str:
    """Return the PTX name of an accumulator's element type. Raises ValueError for a type that has none."""
    names = {"f16": "f16", "f32": "f32", "f64": "f64", "i32": "s32"}
    if str(element) not in names:
        raise ValueError(f"no matrix instruction accumulates in {element}")
    return names[str(element)]


@dataclass(frozen=True)
class MmaPlan:
    """Which registers each instruction takes.

    `a_order`, `b_order` and `acc_order` permute registers so that each instruction's are a run; `tiles` lists (accumulator run, A run,
    B run) in program order.
    """

    a_order: tuple[int, ...]
    b_order: tuple[int, ...]
    acc_order: tuple[int, ...]
    tiles: tuple[tuple[int, int, int], ...]


@lru_cache(maxsize=512)
def plan_mma(a: LinearLayout, b: LinearLayout, acc: LinearLayout, instr: tuple[int, int, int], bits: int, acc_bits: int) -> MmaPlan:
    """Match the registers of the layouts with the fragments of the instruction. Raises ValueError if they do not match."""
    m, n, k = instr
    if a.out_sizes[-1] < k:
        raise ValueError(f"K of {a.out_sizes[-1]} is less than the instruction's {k}")
    sides = (
        _Fragments(a, mma_operand((m, k), (1, 1), bits, 0), (m, k)),
        _Fragments(b, mma_operand((k, n), (1, 1), bits, 1), (k, n)),
        _Fragments(acc, mma_accumulator((m, n), (1, 1), acc_bits), (m, n)),
    )
    left, right, sums = sides
    tiles = []
    for k0 in range(0, a.out_sizes[-1], k):
        for position, (*outer, m0, n0) in enumerate(sums.tiles):
            key_a = (*outer, m0 % max(m, a.out_sizes[-2]), k0)
            key_b = (*outer, k0, n0 % max(n, b.out_sizes[-1]))
            tiles.append((position, left.tiles[key_a], right.tiles[key_b]))
    return MmaPlan(left.order, right.order, sums.order, tuple(tiles))


class _Fragments:
    """The registers of a layout cut into instruction tiles.

    `tiles` maps each tile's first coordinate to its number, `order` lists the registers of all tiles.
    """

    def __init__(self, layout: LinearLayout, fragment: LinearLayout, extent: tuple[int, int]) -> None:
        lanes = [c[-2:] for c in layout.bases["lane"]]
        sizes = layout.out_sizes[-2:]
        expected = [tuple(x if x < s else 0 for x, s in zip(c, sizes, strict=True)) for c in fragment.bases["lane"]]
        if lanes != expected or any(any(c[:-2]) for c in layout.bases["lane"]):
            raise ValueError(f"{layout} is no fragment of the matrix instruction: its lanes should be {expected}")
        registers: dict[tuple[int, ...], int] = {}
        for register, packed in enumerate(linear.images(layout.column("register"))):
            registers.setdefault(layout.unpack(packed), register)
        inner = [fragment.unpack(packed) for packed in linear.images(fragment.column("register"))]
        self.tiles: dict[tuple[int, ...], int] = {}
        order: list[int] = []
        for *outer, row, col in sorted(registers):
            if row % extent[0] or col % extent[1]:
                continue
            self.tiles[(*outer, row, col)] = len(self.tiles)
            order += [registers[(*outer, (row + i) % sizes[0], (col + j) % sizes[1])] for i, j in inner]
        self.order = tuple(order)


@rule("tilegpu.mma")
def mma(ctx: LoweringContext, op: ir.Operation) -> list[ir.Value]:
    a, b, acc = ctx.operands(op)
    types = [v.type.element_type for v in op.operands]
    instr = tuple(ir.DenseI32ArrayAttr(op.attributes["instr"]))
    names = (operand_name(types[0], "a_unsigned" in op.attributes), operand_name(types[1], "b_unsigned" in op.attributes))
    acc_name = accumulator_name(types[2])
    layouts = [ctx.layout(v) for v in op.operands]
    bits, acc_bits = ctx.types.width(a.type), ctx.types.width(acc.type)
    plan = plan_mma(*layouts, instr, bits, acc_bits)
    word = 64 if bits == 64 else 32
    runs = _words_per_tile(plan, bits, acc_bits)
    m, n, k = instr
    text = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{acc_name}.{names[0]}.{names[1]}.{acc_name}"
    constraints, body = _block(plan, text, runs, acc_name)
    key = f"mma.{hashlib.sha1(f'{body}{constraints}{plan}{acc.type}{a.type}'.encode()).hexdigest()[:16]}"

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        words_a = vectors.to_words(inner, vectors.shuffle(inner, arguments[0], plan.a_order), word)
        words_b = vectors.to_words(inner, vectors.shuffle(inner, arguments[1], plan.b_order), word)
        words = accumulator_words(inner, vectors.shuffle(inner, arguments[2], plan.acc_order))
        outs = inline_asm_multi(inner, body, constraints, (*words, *words_a, *words_b), [w.type for w in words])
        result = vectors.from_words(inner, outs, len(plan.acc_order), inner.types.parts(acc.type)[1])
        position = {register: i for i, register in enumerate(plan.acc_order)}
        return vectors.shuffle(inner, result, _inverse(position, layouts[2]))

    return [ctx.helper(key, acc.type, (a, b, acc), build)]


def _words_per_tile(plan: MmaPlan, bits: int, acc_bits: int) -> tuple[int, int, int]:
    """Return the registers that one instruction takes of the accumulator, of A and of B."""
    word = 64 if bits == 64 else 32
    sides = ((plan.acc_order, acc_bits), (plan.a_order, bits), (plan.b_order, bits))
    return tuple(len(order) * width // word // (1 + max(t[i] for t in plan.tiles)) for i, (order, width) in enumerate(sides))


def _inverse(position: dict[int, int], layout: LinearLayout) -> list[int]:
    """Where each register's element lies in the permuted accumulator; register copies share one."""
    images = linear.images(layout.column("register"))
    by_image = {images[r]: p for r, p in position.items()}
    return [by_image[image] for image in images]


@lru_cache(maxsize=256)
def _block(plan: MmaPlan, instruction: str, runs: tuple[int, int, int], acc_name: str) -> tuple[str, str]:
    """Return (constraints, text) of the inline assembly of all instructions. Operands: outputs, tied inputs, words of A, words of B."""
    acc_run, a_run, b_run = runs
    count_acc, count_a, count_b = ((1 + max(t[i] for t in plan.tiles)) * run for i, run in enumerate(runs))
    # Tied inputs have numbers of their own in the operand list.
    first_a = 2 * count_acc
    first_b = first_a + count_a

    def registers(first: int, count: int) -> str:
        return "{" + ",".join(f"${first + i}" for i in range(count)) + "}"

    lines = []
    for acc, a, b in plan.tiles:
        d = registers(acc * acc_run, acc_run)
        lines.append(f"{instruction} {d}, {registers(first_a + a * a_run, a_run)}, {registers(first_b + b * b_run, b_run)}, {d};")
    letter, operand = accumulator_letter(acc_name), "d" if acc_name == "f64" else "r"
    constraints = [f"={letter}"] * count_acc + [str(i) for i in range(count_acc)] + [operand] * (count_a + count_b)
    return ",".join(constraints), "\n".join(lines)


def accumulator_letter(acc_name: str) -> str:
    """Return the inline assembly constraint of an accumulator's words: f16 comes in pairs in 32-bit words."""
    return {"f32": "f", "f64": "d", "s32": "r", "f16": "r"}[acc_name]


def accumulator_words(ctx: LoweringContext, vector: ir.Value) -> Sequence[ir.Value]:
    """The registers of an accumulator as inline assembly takes them: f32, f64 and i32 elements, or pairs of f16 as i32."""
    element = ctx.types.parts(vector.type)[1]
    return vectors.to_words(ctx, vector) if element == ctx.types.f16 else vectors.unpack(ctx, vector)
