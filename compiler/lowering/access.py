"""How the elements of a pointer tensor are grouped into accesses of global memory: widths, addresses, predicates.

Used by loads, stores, atomics and asynchronous copies. A group is the registers that one instruction moves: neighbours in memory along
one dimension, aligned to their total size, under one mask bit.
"""

from dataclasses import dataclass
from functools import lru_cache

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.layouts import LinearLayout, contiguous_registers
from tilewright.dialects import tile

from . import linear, vectors
from .context import LoweringContext


@dataclass(frozen=True)
class Grouping:
    """The accesses of one tensor: each group lists its registers in ascending address order, all groups are equally long.

    Registers that only repeat another register's element are in no group; `source[r]` is the position in the concatenated groups of
    the element of register r.
    """

    groups: tuple[tuple[int, ...], ...]
    source: tuple[int, ...]

    @property
    def width(self) -> int:
        return len(self.groups[0])


@lru_cache(maxsize=1024)
def grouping(layout: LinearLayout, dim: int, limit: int) -> Grouping:
    """Groups along `dim` of at most `limit` elements (a power of two)."""
    bits = vector_bits(layout, dim, limit)
    images = linear.images(layout.column("register"))
    free = layout.free_masks()["register"]
    vector_mask = sum(1 << b for b in bits)
    offsets = linear.images([1 << b for b in bits])
    groups = tuple(tuple(base | o for o in offsets) for base in range(len(images)) if not base & (vector_mask | free))
    position = {images[r]: i for i, r in enumerate(r for group in groups for r in group)}
    return Grouping(groups, tuple(position[image] for image in images))


def vector_bits(layout: LinearLayout, dim: int, limit: int) -> list[int]:
    """The register bits that step by 1, 2, 4, … along `dim`, as far as `limit` elements."""
    return list(contiguous_registers(layout, dim, limit))


@dataclass(frozen=True)
class Access:
    """The grouping that suits a pointer tensor, with what is needed for its addresses. `size` is the bytes of one element."""

    grouping: Grouping
    layout: LinearLayout
    dim: int
    contiguity: int
    size: int


def plan(ctx: LoweringContext, pointer: ir.Value, mask: ir.Value | None, max_bytes: int = 16) -> Access:
    """Choose the dimension and width of the accesses through the old pointer tensor `pointer` under the old `mask`."""
    info = ctx.tensor(pointer)
    size = element_bytes(tile.pointee(pointer.type.element_type))
    axis = ctx.axis_info
    best_dim, best_limit, best_bits = len(info.shape) - 1, 1, -1
    for dim in reversed(range(len(info.shape))):
        limit = axis.access_width(pointer, mask, dim, max_bytes)
        bits = len(vector_bits(info.layout, dim, limit))
        if bits > best_bits:
            best_dim, best_limit, best_bits = dim, limit, bits
    contiguity = axis.get(pointer).contiguity[best_dim]
    return Access(grouping(info.layout, best_dim, best_limit), info.layout, best_dim, contiguity, size)


class Addresses:
    """The scalar addresses of the groups of an access. Groups in one contiguous run share a pointer and differ by an immediate."""

    def __init__(self, ctx: LoweringContext, access: Access, vector: ir.Value) -> None:
        self.ctx, self.access, self.vector = ctx, access, vector
        self.roots: dict[int, ir.Value] = {}
        layout, dim = access.layout, access.dim
        shift = layout.shifts[dim]
        taken = linear.support_of(linear.thread_columns(layout) + layout.column("block"))
        column = layout.column("register")
        within = (min(access.contiguity, layout.out_sizes[dim]) - 1) << shift
        self.steps = {}  # register bit -> elements that it moves within a run
        for bit, image in enumerate(column):
            others = linear.support_of(column[:bit] + column[bit + 1 :])
            if image and not image & ~within and not image & (taken | others):
                self.steps[bit] = image >> shift

    def of(self, register: int) -> ir.Value:
        """The pointer of the element in `register`."""
        offset, root = 0, register
        for bit, step in self.steps.items():
            if register >> bit & 1:
                offset += step
                root ^= 1 << bit
        pointer = self.roots.get(root)
        if pointer is None:
            pointer = self.roots[root] = vectors.element(self.ctx, self.vector, root)
        if offset == 0:
            return pointer
        attrs = self.ctx.types.const_gep_attrs(self.ctx.types.i8, offset * self.access.size)
        return self.ctx.emit("llvm.getelementptr", pointer.type, (pointer,), attrs)


def owner(ctx: LoweringContext, layout: LinearLayout | None) -> ir.Value | None:
    """i1: whether this thread is the one that writes its elements, where several hold copies; None if there are no copies.

    `layout` None stands for a scalar, which the first thread of the program owns, or that of the role.
    """
    if layout is None:
        return both(ctx, first_thread(ctx), are_zero(ctx, "cluster_rank", ctx.facts.num_ctas - 1))
    free = layout.free_masks()
    threads = free.get("lane", 0) | free.get("warp", 0) << layout.in_bits("lane")
    return both(ctx, are_zero(ctx, "thread_id", threads), are_zero(ctx, "cluster_rank", free.get("block", 0)))


def first_thread(ctx: LoweringContext) -> ir.Value | None:
    """i1: whether this is the first thread of its CTA or of the role; None where the role is that one thread."""
    if ctx.role is not None and ctx.role.alone:
        return None
    return are_zero(ctx, "thread_id", (1 << (ctx.facts.threads - 1).bit_length()) - 1)


def are_zero(ctx: LoweringContext, index: str, mask: int) -> ir.Value | None:
    """i1: whether the bits `mask` of an index are zero; None if there are none."""
    if not mask:
        return None

    def build() -> ir.Value:
        bits = ctx.emit("llvm.and", ctx.types.i32, (getattr(ctx, index), ctx.i32(mask)))
        return ctx.emit("llvm.icmp", ctx.types.i1, (bits, ctx.i32(0)), ctx.types.icmp("eq"))

    return ctx.once(f"{index} {mask} zero", build)


def both(ctx: LoweringContext, a: ir.Value | None, b: ir.Value | None) -> ir.Value | None:
    """The conjunction of two optional i1 values; None means true."""
    if a is None or b is None:
        return b if a is None else a
    return ctx.emit("llvm.and", ctx.types.i1, (a, b))


def segments(op: ir.Operation) -> list[ir.Value | None]:
    """The operands of an op of optional operands, absent ones as None."""
    operands = iter(op.operands)
    return [next(operands) if size else None for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]


def keyword(op: ir.Operation, name: str, default: str = "") -> str:
    """The name of an enumeration attribute of the tile dialect: "cg" of `cache = cg`."""
    return tile.enum_value(op.attributes[name]) if name in op.attributes else default
