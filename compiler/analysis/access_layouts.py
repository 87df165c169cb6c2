"""Coalesced layouts for loads, stores and atomics.

Neighbouring lanes take neighbouring memory, and a thread as many neighbouring elements as alignment allows, up to 16 bytes. Accesses of
one shape and order get one layout, so that values pass between them without conversion: `x` in bf16 and `w` in f32 of one row are
both held four elements a thread, 8 and 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from tilewright.compiler.layouts import LinearLayout, blocked, spread
from tilewright.dialects import tile

from .axis_info import AxisAnalysis, element_bytes
from .machine import Machine
from .tree import Node, Tree

#: The operand that is the mask, if it is there, of each operation on a pointer tensor (operand 0).
_MASK_OPERAND = {
    "tile.load": 1,
    "tile.store": 2,
    "tile.atomic_rmw": 2,
    "tile.atomic_cas": None,
    "tile.atomic_load": 1,
    "tile.atomic_store": 2,
    "tile.atomic_poll": None,
}
MEMORY_OPS = frozenset(_MASK_OPERAND)

# A thread's run in the widest type of a group is one access: with two, lanes are 32 bytes apart in each, which touches all lines twice.
_MAX_RUN_BYTES = 16
SECTOR_BYTES, LINE_BYTES = 32, 128
_MIN_THREAD_BYTES = 8


@dataclass(frozen=True)
class Access:
    """How one memory operation goes about its tensor: dimensions from the fastest one, and elements per access along `order[0]`."""

    order: tuple[int, ...]
    width: int
    layout: LinearLayout


def mask_of(node: Node) -> ir.Value | None:
    """Return the mask operand of a memory operation, or None."""
    position = _MASK_OPERAND[node.name]
    return node.operands[position] if position is not None and position < len(node.operands) else None


def access_layouts(tree: Tree, axis: AxisAnalysis, machine: Machine) -> dict[Node, Access]:
    """Choose the layout of every memory operation on pointer tensors."""
    groups: dict[tuple, list[tuple[Node, int, int]]] = {}
    scanned: set[tuple[tuple[int, ...], int]] = set()
    names = set()
    for node in tree.body.walk():
        names.add(node.name)
        if node.name == "tile.scan":
            scanned.add((tree.shape(node.operands[0]), ir.IntegerAttr(node.op.attributes["axis"]).value))
        if node.name not in _MASK_OPERAND or node.operands[0] not in tree.tensors:
            continue
        pointer = node.operands[0]
        shape = tree.shape(pointer)
        contiguity = axis.get(pointer).contiguity
        order = tuple(sorted(range(len(shape)), key=lambda d: (-contiguity[d], -d)))
        size = element_bytes(tile.pointee(tree.tensors[pointer].element_type))
        width = axis.access_width(pointer, mask_of(node), order[0])
        width = min(width, max(1, prod(shape) // machine.threads))
        groups.setdefault((shape, order, _feeds_only_dots(node, tree)), []).append((node, width, size))
    # A block that is turned around passes shared memory in pieces as wide as what a thread holds of it in both directions.
    turned = "tile.dot" not in names and ("tile.trans" in names or len({order for shape, order, _ in groups if len(shape) > 1}) > 1)
    out = {}
    for (shape, order, _), members in groups.items():
        run = max(width for _, width, _ in members)
        run = max(1, min(run, _MAX_RUN_BYTES // max(size for _, _, size in members)))
        layout = coalesced(shape, order, run, machine, [d for d in order[1:] if turned or (shape, d) in scanned])
        for node, width, _ in members:
            out[node] = Access(order, width, layout)
    return out


def _feeds_only_dots(node: Node, tree: Tree) -> bool:
    """Whether a load's value goes to dots alone, so through shared memory, and shares its layout with nothing."""
    if node.name != "tile.load":
        return False
    users = [tree.node_of(use.owner.operation) for use in node.results[0].uses]
    users += [tree.node_of(use.owner.operation) for u in users if u and u.name == "tile.trans" for use in u.results[0].uses]
    return bool(users) and all(u is not None and u.name in ("tile.dot", "tile.trans") for u in users)


def coalesced(shape: tuple[int, ...], order: tuple[int, ...], run: int, machine: Machine, neighbours: Sequence[int] = ()) -> LinearLayout:
    """Return the blocked layout with `run` elements a thread along `order[0]`, lanes and then warps spread in `order`.

    What a thread holds along the dimensions `neighbours` is next to each other, for scans along them, which then begin within a thread, and
    for accesses along them.
    """
    per_thread = [min(run, s) if d == order[0] else 1 for d, s in enumerate(shape)]
    lanes, warps = spread(shape, per_thread, order, machine.num_warps, machine.threads_per_warp)
    for d in neighbours:
        per_thread[d] = max(1, shape[d] // (lanes[d] * warps[d]))
    return blocked(shape, tuple(per_thread), lanes, warps, order)


def fills(layout: LinearLayout, dim: int, element: int, whole: int) -> bool:
    """Whether a warp's access in `layout` covers runs of `whole` bytes of memory (a sector, a line), and each thread 8 bytes, if elements
    of `element` bytes are contiguous along `dim`."""
    registers, lanes = layout.column("register"), layout.column("lane")
    run, own = 1, 1
    while run < layout.out_sizes[dim]:
        step = run << layout.shifts[dim]
        if step in registers and own == run:
            own *= 2
        elif step not in registers and step not in lanes:
            break
        run *= 2
    return own * element >= _MIN_THREAD_BYTES and run * element >= whole
