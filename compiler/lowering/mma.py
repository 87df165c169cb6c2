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
from .matrix_loads import MatrixLoads, is_fused, matrix_loads
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
    acc = ctx.value(op.operands[2])
    types = [v.type.element_type for v in op.operands]
    instr = tuple(ir.DenseI32ArrayAttr(op.attributes["instr"]))
    names = (operand_name(types[0], "a_unsigned" in op.attributes), operand_name(types[1], "b_unsigned" in op.attributes))
    acc_name = accumulator_name(types[2])
    layouts = [ctx.layout(v) for v in op.operands]
    bits, acc_bits = ctx.types.width(ctx.tensor(op.operands[0]).element), ctx.types.width(acc.type)
    plan = plan_mma(*layouts, instr, bits, acc_bits)
    word = 64 if bits == 64 else 32
    m, n, k = instr
    # Each operand is a vector of its registers, or what its loads need: addresses.
    loads: list[MatrixLoads | None] = []
    operands: list[ir.Value] = [acc]
    counts = []
    for side, fragment in enumerate(((m, k), (k, n))):
        old = op.operands[side]
        if is_fused(ctx, old):
            found, values = matrix_loads(ctx, old, fragment, 1 - side)
        else:
            found, values = None, [ctx.value(old)]
        loads.append(found)
        operands += values
        counts.append(len(values))
    text = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{acc_name}.{names[0]}.{names[1]}.{acc_name}"
    constraints, body = _block(plan, text, _words_per_tile(plan, bits, acc_bits), acc_name, tuple(loads), tuple(counts))
    key = f"mma.{hashlib.sha1(f'{body}{constraints}{plan}{acc.type}{bits}'.encode()).hexdigest()[:16]}"

    def build(inner: LoweringContext, arguments: list[ir.Value]) -> ir.Value:
        words = list(accumulator_words(inner, vectors.shuffle(inner, arguments[0], plan.acc_order)))
        inputs = []
        for side, order in enumerate((plan.a_order, plan.b_order)):
            given = arguments[1 + side * counts[0] :][: counts[side]]
            inputs += given if loads[side] else vectors.to_words(inner, vectors.shuffle(inner, given[0], order), word)
        outs = inline_asm_multi(inner, body, constraints, (*words, *inputs), [w.type for w in words])
        result = vectors.from_words(inner, outs, len(plan.acc_order), inner.types.parts(acc.type)[1])
        position = {register: i for i, register in enumerate(plan.acc_order)}
        return vectors.shuffle(inner, result, _inverse(position, layouts[2]))

    return [ctx.helper(key, acc.type, operands, build)]


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


class _Operand:
    """The words of operand A or B in the assembly text: inputs from number `first` on, or registers of its own that ldmatrix fills."""

    def __init__(self, name: str, first: int, run: int, order: tuple[int, ...], loads: MatrixLoads | None) -> None:
        self.name, self.first, self.run, self.order, self.loads = name, first, run, order, loads
        self.place: dict[int, tuple[int, int]] = {}  # first register of a word -> (load, word)
        self.loaded: set[int] = set()
        for number, (_, _, registers) in enumerate(loads.loads if loads else ()):
            for word in range(len(registers) // loads.elements_per_word):
                self.place[registers[word * loads.elements_per_word]] = (number, word)

    @property
    def declarations(self) -> list[str]:
        """The registers of all loads."""
        return [f".reg .b32 {self.name}<{len(self.place)}>;"] if self.loads else []

    def _words_per_load(self) -> int:
        return len(self.place) // len(self.loads.loads)

    def words(self, tile: int, lines: list[str]) -> str:
        """The words of an instruction's part; appends the loads that bring them to `lines` if they are not there yet."""
        if self.loads is None:
            return "{" + ",".join(f"${self.first + tile * self.run + i}" for i in range(self.run)) + "}"
        per_load = self._words_per_load()
        names = []
        for i in range(self.run):
            load, word = self.place[self.order[(tile * self.run + i) * self.loads.elements_per_word]]
            if load not in self.loaded:
                self.loaded.add(load)
                root, offset, _ = self.loads.loads[load]
                targets = ",".join(f"{self.name}{load * per_load + j}" for j in range(per_load))
                trans = ".trans" if self.loads.transposed else ""
                lines.append(f"ldmatrix.sync.aligned.m8n8.x{per_load}{trans}.shared.b16 {{{targets}}}, [${self.first + root}+{offset}];")
            names.append(f"{self.name}{load * per_load + word}")
        return "{" + ",".join(names) + "}"


@lru_cache(maxsize=256)
def _block(
    plan: MmaPlan,
    instruction: str,
    runs: tuple[int, int, int],
    acc_name: str,
    loads: tuple[MatrixLoads | None, MatrixLoads | None],
    counts: tuple[int, int],
) -> tuple[str, str]:
    """Return (constraints, text) of the inline assembly of all instructions. Operands: outputs, tied inputs, those of A, those of B.

    `counts` are the address operands of A and of B where they are loaded here.
    """
    tiles = [1 + max(t[i] for t in plan.tiles) for i in range(3)]
    acc_run = runs[0]
    count_acc = tiles[0] * acc_run
    inputs = [counts[side] if loads[side] else tiles[1 + side] * runs[1 + side] for side in (0, 1)]
    # Tied inputs have numbers of their own in the operand list.
    a = _Operand("a", 2 * count_acc, runs[1], plan.a_order, loads[0])
    b = _Operand("b", 2 * count_acc + inputs[0], runs[2], plan.b_order, loads[1])
    lines: list[str] = []
    for acc, left, right in plan.tiles:
        d = "{" + ",".join(f"${acc * acc_run + i}" for i in range(acc_run)) + "}"
        words = a.words(left, lines), b.words(right, lines)
        lines.append(f"{instruction} {d}, {words[0]}, {words[1]}, {d};")
    declarations = a.declarations + b.declarations
    if declarations:
        lines = ["{", *declarations, *lines, "}"]
    letter, operand = accumulator_letter(acc_name), "d" if acc_name == "f64" else "r"
    constraints = [f"={letter}"] * count_acc + [str(i) for i in range(count_acc)] + [operand] * sum(inputs)
    if declarations:
        constraints.append("~{memory}")
    return ",".join(constraints), "\n".join(lines)


def accumulator_letter(acc_name: str) -> str:
    """Return the inline assembly constraint of an accumulator's words: f16 comes in pairs in 32-bit words."""
    return {"f32": "f", "f64": "d", "s32": "r", "f16": "r"}[acc_name]


def accumulator_words(ctx: LoweringContext, vector: ir.Value) -> Sequence[ir.Value]:
    """The registers of an accumulator as inline assembly takes them: f32, f64 and i32 elements, or pairs of f16 as i32."""
    element = ctx.types.parts(vector.type)[1]
    return vectors.to_words(ctx, vector) if element == ctx.types.f16 else vectors.unpack(ctx, vector)
