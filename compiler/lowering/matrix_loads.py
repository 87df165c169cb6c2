"""ldmatrix inside of the block of matrix instructions that uses it.

A `tilegpu.local_load` right in front of its only user, a `tilegpu.mma`, is not lowered by itself: all its registers would be live before
the first instruction. The matrix instruction's inline assembly loads each piece where it is first needed.
"""

from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts import LinearLayout, shared_columns

from . import linear, shared_access
from .context import LoweringContext


@dataclass(frozen=True)
class MatrixLoads:
    """The loads of one operand. Each is (number of its address operand, byte offset, registers in the order in which it yields them)."""

    transposed: bool
    elements_per_word: int
    loads: tuple[tuple[int, int, tuple[int, ...]], ...]


def is_fused(ctx: LoweringContext, value: ir.Value) -> bool:
    """Whether the old tensor value `value` is a local_load that its user, a matrix instruction, issues itself."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "tilegpu.local_load":
        return False
    op = op.operation
    uses = list(value.uses)
    if len(uses) != 1:
        return False
    user = uses[0].owner.operation
    if user.name != "tilegpu.mma" or user.block != op.block or not _adjacent(op, user):
        return False
    shared, info = shared_of(op.operands[0].type), ctx.tensor(value)
    columns = shared_columns(info.layout, shared)
    return shared.padding is None and _plan(columns["register"], columns, ctx.types.width(info.element) // 8).kind != "plain"


def _adjacent(op: ir.Operation, user: ir.Operation) -> bool:
    """Whether nothing but loads from shared memory stands between the two."""
    inside = False
    for other in op.block.operations:
        other = other.operation
        if other == user:
            return inside
        if inside and other.name != "tilegpu.local_load":
            return False
        inside = inside or other == op
    return False


def _plan(registers: tuple[int, ...], columns: dict[str, tuple[int, ...]], element_bytes: int) -> shared_access.AccessPlan:
    limit = shared_access.ACCESS_BYTES // element_bytes
    return shared_access.plan_access(registers, columns["lane"], columns["warp"], element_bytes, limit, True)


def matrix_loads(ctx: LoweringContext, value: ir.Value, fragment: tuple[int, int], k_dim: int) -> tuple[MatrixLoads, list[ir.Value]]:
    """Return the loads of a fused operand and their address operands. `fragment` is the extent of one instruction's part of it.

    One ldmatrix brings what one instruction needs, then neighbouring instructions along M or N, and only then further K.
    """
    load = value.owner.operation
    shared, info = shared_of(load.operands[0].type), ctx.tensor(value)
    element_bytes = ctx.types.width(info.element) // 8
    columns = shared_columns(info.layout, shared)
    order = _register_order(info.layout, fragment, k_dim)
    registers = tuple(columns["register"][bit] for bit in order)
    plan = _plan(registers, columns, element_bytes)
    addresses = shared_access.SharedAddresses(ctx, ctx.value(load.operands[0]), plan.address + columns["warp"], element_bytes, None)
    numbers = linear.images([1 << bit for bit in order])
    roots: list[ir.Value] = []
    loads = []
    for offset, group in shared_access.access_groups(plan, registers, 0):
        root, fixed = addresses.split(offset)
        if root not in roots:
            roots.append(root)
        loads.append((roots.index(root), fixed, tuple(numbers[r] for r in group)))
    return MatrixLoads(plan.kind == "transposed", 4 // element_bytes, tuple(loads)), roots


def _register_order(layout: LinearLayout, fragment: tuple[int, int], k_dim: int) -> list[int]:
    """Register bits inside an instruction first, then those along M, N or a batch, then those along K."""

    def rank(bit: int) -> int:
        *batch, row, col = layout.bases["register"][bit]
        k, outer = ((row, col), (col, row))[k_dim]
        if k >= fragment[k_dim]:
            return 2
        return int(any(batch) or outer >= fragment[1 - k_dim])

    return sorted(range(layout.in_bits("register")), key=rank)
