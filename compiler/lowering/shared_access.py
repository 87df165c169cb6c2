"""Moving the registers of a thread to and from shared memory: the widest accesses that the offsets allow, or ldmatrix and stmatrix.

Offsets are linear: `columns["register" | "lane" | "warp"]` give the element offset of each bit of the register, lane and warp index, and
`start` is XORed to all of them. A vector argument or result holds register i in element i, in memory form (integers of 8 to 64 bits).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlir import ir

from tilewright.compiler.layouts import f2, vector_basis

from . import linear, vectors
from .context import LoweringContext

ACCESS_BYTES = 16
MATRIX_ROW_BYTES = 16
#: Above this width a plain access moves as much as a matrix access does.
MATRIX_PAYS_BELOW = 8
MAX_MATRICES = 4


@dataclass(frozen=True)
class AccessPlan:
    """How the registers are grouped. `vector` and `rest` are register masks that together are a basis of the register bits.

    kind "plain": registers that differ by `vector` masks are neighbours in memory and move together.
    kind "matrix": `vector` spans one 32-bit word, four lanes make a 16-byte row, up to two `rest` masks tell matrices apart.
    kind "transposed": `vector` is the pair of 16-bit elements in a word, which lie in neighbouring rows of a matrix.
    `address` are the element offsets of the bits of the lane that supplies the address.
    """

    kind: str
    vector: tuple[int, ...]
    rest: tuple[int, ...]
    address: tuple[int, ...]


@lru_cache(maxsize=4096)
def plan_access(
    registers: tuple[int, ...], lanes: tuple[int, ...], warps: tuple[int, ...], element_bytes: int, limit: int, matrix: bool
) -> AccessPlan:
    """Choose the access for given offset columns; `limit` bounds the elements of a plain access, `matrix` allows matrix accesses."""
    vector, rest = vector_basis(registers, lanes + warps, min(limit, ACCESS_BYTES // element_bytes))
    plain = AccessPlan("plain", vector, rest, lanes)
    if not matrix or element_bytes > 4 or len(lanes) != 5 or element_bytes << len(vector) >= MATRIX_PAYS_BELOW:
        return plain
    return _matrix_plan(registers, lanes, warps, element_bytes) or _transposed_plan(registers, lanes, warps, element_bytes) or plain


def _matrix_plan(registers, lanes, warps, element_bytes: int) -> AccessPlan | None:
    words = 4 // element_bytes
    row = MATRIX_ROW_BYTES // element_bytes
    if lanes[:2] != (words, 2 * words) or any(c % row for c in lanes[2:] + warps):
        return None
    vector, rest = vector_basis(registers, (), words)
    if 1 << len(vector) != words or any(f2.apply(registers, r) % row for r in rest):
        return None
    return AccessPlan("matrix", vector, rest, _row_addresses(lanes[2:], registers, rest))


def _transposed_plan(registers, lanes, warps, element_bytes: int) -> AccessPlan | None:
    row = MATRIX_ROW_BYTES // element_bytes
    if element_bytes != 2 or lanes[2:] != (1, 2, 4) or not registers or any(c % row for c in registers + lanes[:2] + warps):
        return None
    rest = tuple(1 << bit for bit in range(1, len(registers)))
    return AccessPlan("transposed", (1,), rest, _row_addresses((registers[0], *lanes[:2]), registers, rest))


def _row_addresses(rows: Sequence[int], registers: Sequence[int], rest: Sequence[int]) -> tuple[int, ...]:
    """Lane t supplies the address of row t % 8 of matrix t / 8; spare matrices repeat."""
    matrices = [f2.apply(registers, mask) for mask in rest[:2]]
    return (*rows, *matrices, *(0,) * (2 - len(matrices)))


class SharedAddresses:
    """Pointers into a buffer: a part that depends on the thread, made once per function, XOR a constant part for each access."""

    def __init__(
        self, ctx: LoweringContext, base: ir.Value, thread: Sequence[int], element_bytes: int, padding: tuple[int, int] | None
    ) -> None:
        self.ctx, self.base, self.size, self.padding = ctx, base, element_bytes, padding
        self.support = linear.support_of(thread)
        columns = tuple(thread)
        self.thread = ctx.once(f"shared offset {columns}", lambda: linear.apply_columns(ctx, ctx.thread_id, columns))
        self.roots: dict[int, ir.Value] = {}

    def split(self, constant: int) -> tuple[ir.Value, int]:
        """(pointer, bytes to add) of the element at the thread's offset XOR `constant`; the pointer is shared by as many as possible."""
        mixed = constant & self.support
        root = self.roots.get(mixed)
        if root is None:
            root = self.roots[mixed] = self._root(mixed)
        return root, self._bytes(constant ^ mixed)

    def of(self, constant: int) -> ir.Value:
        """The address of the element at the thread's offset XOR `constant`."""
        root, fixed = self.split(constant)
        if fixed == 0:
            return root
        return self.ctx.emit("llvm.getelementptr", root.type, (root,), self.ctx.types.const_gep_attrs(self.ctx.types.i8, fixed))

    def _root(self, mixed: int) -> ir.Value:
        ctx, i32 = self.ctx, self.ctx.types.i32
        if self.support == 0:
            return self.base
        offset = self.thread if mixed == 0 else ctx.emit("llvm.xor", i32, (self.thread, ctx.i32(mixed)))
        if self.padding is not None:
            interval, amount = self.padding
            blocks = ctx.emit("llvm.lshr", i32, (offset, ctx.i32(interval.bit_length() - 1)))
            offset = ctx.emit("llvm.add", i32, (offset, ctx.emit("llvm.mul", i32, (blocks, ctx.i32(amount)))))
        if self.size > 1:
            offset = ctx.emit("llvm.shl", i32, (offset, ctx.i32(self.size.bit_length() - 1)))
        return ctx.emit("llvm.getelementptr", self.base.type, (self.base, offset), ctx.types.gep_attrs(ctx.types.i8))

    def _bytes(self, offset: int) -> int:
        # Disjoint bits add without a carry, so padding adds up too.
        if self.padding is not None:
            interval, amount = self.padding
            offset += offset // interval * amount
        return offset * self.size


def _prepare(
    ctx: LoweringContext,
    base: ir.Value,
    columns: Mapping[str, Sequence[int]],
    start: int,
    element_bytes: int,
    padding: tuple[int, int] | None,
    matrix: bool,
) -> tuple[AccessPlan, SharedAddresses, list[tuple[int, list[int]]]]:
    """Return the plan, the addresses, and the `access_groups`."""
    limit = ACCESS_BYTES // element_bytes if padding is None else min(padding)
    registers, lanes, warps = (tuple(columns[name]) for name in ("register", "lane", "warp"))
    plan = plan_access(registers, lanes, warps, element_bytes, limit, matrix and padding is None)
    addresses = SharedAddresses(ctx, base, plan.address + warps, element_bytes, padding)
    return plan, addresses, access_groups(plan, registers, start)


def access_groups(plan: AccessPlan, registers: Sequence[int], start: int) -> list[tuple[int, list[int]]]:
    """Return (constant offset, registers in the order in which they move) of each access of a plan."""
    # A matrix access moves up to four matrices, told apart by the first `rest` masks.
    told = 0 if plan.kind == "plain" else min(MAX_MATRICES.bit_length() - 1, len(plan.rest))
    together = [m ^ i for m in linear.images(plan.rest[:told]) for i in linear.images(plan.vector)]
    return [(start ^ f2.apply(registers, outer), [outer ^ r for r in together]) for outer in linear.images(plan.rest[told:])]


def store(
    ctx: LoweringContext,
    base: ir.Value,
    vector: ir.Value,
    columns: Mapping[str, Sequence[int]],
    start: int = 0,
    padding: tuple[int, int] | None = None,
) -> None:
    """Write all registers of `vector` to the buffer at `base` (ptr<3>)."""
    element_bytes = ctx.types.width(vector.type) // 8
    plan, addresses, groups = _prepare(ctx, base, columns, start, element_bytes, padding, ctx.facts.arch >= 90)
    for offset, registers in groups:
        values = vectors.shuffle(ctx, vector, registers)
        pointer = addresses.of(offset)
        if plan.kind == "plain":
            attrs = {"alignment": ctx.types.int_attr(64, len(registers) * element_bytes)}
            ctx.emit_void("llvm.store", (values, pointer), attrs)
        else:
            words = vectors.to_words(ctx, values)
            ctx.call_intrinsic(f"llvm.nvvm.stmatrix.sync.aligned.m8n8.x{len(words)}{_suffix(plan)}.b16", None, (pointer, *words))


def load(
    ctx: LoweringContext,
    base: ir.Value,
    element: ir.Type,
    columns: Mapping[str, Sequence[int]],
    start: int = 0,
    padding: tuple[int, int] | None = None,
    matrix: bool = True,
) -> ir.Value:
    """Read all registers from the buffer at `base` (ptr<3>, or without `matrix` another CTA's, ptr<7>) as a vector of integers of type
    `element`."""
    bits = ctx.types.width(element)
    plan, addresses, groups = _prepare(ctx, base, columns, start, bits // 8, padding, matrix)
    loaded, order = [], []
    for offset, registers in groups:
        pointer = addresses.of(offset)
        count = len(registers)
        if plan.kind == "plain":
            attrs = {"alignment": ctx.types.int_attr(64, count * bits // 8)}
            loaded.append(ctx.emit("llvm.load", ctx.types.vector(count, element), (pointer,), attrs))
        else:
            loaded.append(_load_matrices(ctx, pointer, count * bits // 32, _suffix(plan), count, element))
        order += registers
    position = {register: i for i, register in enumerate(order)}
    return vectors.shuffle(ctx, vectors.concat(ctx, loaded), [position[r] for r in range(len(order))])


def _suffix(plan: AccessPlan) -> str:
    return ".trans" if plan.kind == "transposed" else ""


def _load_matrices(ctx: LoweringContext, pointer: ir.Value, words: int, suffix: str, count: int, element: ir.Type) -> ir.Value:
    i32 = ctx.types.i32
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{words}{suffix}.b16"
    if words == 1:
        return vectors.from_words(ctx, [ctx.call_intrinsic(name, i32, (pointer,))], count, element)
    packed = ctx.call_intrinsic(name, ctx.types.struct(*[i32] * words), (pointer,))
    parts = [ctx.emit("llvm.extractvalue", i32, (packed,), ctx.types.position(i)) for i in range(words)]
    return vectors.from_words(ctx, parts, count, element)


def memory_element(ctx: LoweringContext, element: ir.Type) -> ir.Type:
    """The integer type that an element of LLVM type `element` has in memory; an i1 takes a byte."""
    return ctx.types.int(max(8, ctx.types.width(element)))


def to_memory(ctx: LoweringContext, vector: ir.Value) -> ir.Value:
    """`vector` in memory form: integers of 8 to 64 bits."""
    count, element = ctx.types.parts(vector.type)
    wanted = ctx.types.vector(count, memory_element(ctx, element))
    if element in ctx.types.pointers:
        return ctx.emit("llvm.ptrtoint", wanted, (vector,))
    if element == ctx.types.i1:
        return ctx.emit("llvm.zext", wanted, (vector,))
    return vectors.bitcast(ctx, vector, wanted)


def from_memory(ctx: LoweringContext, vector: ir.Value, element: ir.Type) -> ir.Value:
    """The inverse of `to_memory` for elements of LLVM type `element`."""
    wanted = ctx.types.like(vector.type, element)
    if element in ctx.types.pointers:
        return ctx.emit("llvm.inttoptr", wanted, (vector,))
    if element == ctx.types.i1:
        return ctx.emit("llvm.trunc", wanted, (vector,))
    return vectors.bitcast(ctx, vector, wanted)
