"""Which loads and stores through pointers a kernel should leave to TMA, for `tile-pointer-boxes`.

Loads: those that feed wgmmas, if all that feed those of one loop can be; and then also those of such operands outside of loops.
Stores, in kernels with such loads and without synchronization: blocks of some size into arrays that the kernel touches in no other way.
TMA writes in any order, so no two stores of a program may be to one place.

TMA does not see what the kernel wrote before: not in its own program, nor in another one that this one has synchronized with. So what the
kernel may write is loaded as before. That different arguments are different arrays is relied on only where a load that runs ahead in its
loop relies on it anyway; behind a barrier, or an atomic operation that other programs may answer, it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

from mlir import ir

from tilewright.compiler.analysis.affine import Forms
from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.boxes import Box, box_of, is_aligned
from tilewright.compiler.analysis.dot_plan import plan_dot
from tilewright.compiler.analysis.loop_slice import GLOBAL_WRITES, base_argument, may_do_anything, sees_others
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.analysis.order import LOOPS, Order
from tilewright.compiler.analysis.polynomial import Polynomial, quotient
from tilewright.compiler.analysis.tree import key
from tilewright.compiler.layouts.descriptors import tma_layout

from .building import is_zero

_LOAD, _STORE = "tile.load", "tile.store"
_READS = frozenset({_LOAD, "tile.descriptor_load", "tile.descriptor_gather", "tile.atomic_load", "tile.atomic_poll"})
_ATOMICS = frozenset({"tile.atomic_rmw", "tile.atomic_cas", "tile.atomic_store"})
_TMA_BYTES = 16
_MIN_STORE_BYTES = 8 * 1024


@dataclass
class BoxAccesses:
    """The loads and stores, each with its box, and the loops that hold such loads."""

    loads: list[tuple[ir.Operation, Box]] = field(default_factory=list)
    stores: list[tuple[ir.Operation, Box]] = field(default_factory=list)
    loops: list[ir.Operation] = field(default_factory=list)


def box_accesses(ops: list[ir.Operation], forms: Forms, machine: Machine) -> BoxAccesses:
    """Decide for a kernel whose operations are `ops`, in program order."""
    out = BoxAccesses()
    loads = [op for op in ops if op.name == _LOAD and any(_is_wgmma(user, machine) for user, _ in _users(op.results[0]))]
    loops = {key(load.parent.operation): load.parent.operation for load in loads if load.parent.name == "scf.for"}
    accesses = _by_argument(ops) if loops else None
    if accesses is None:
        return out
    order = Order(ops)
    boxes = []
    for load in loads:
        is_free = all(op.name not in GLOBAL_WRITES for op in accesses[base_argument(load.operands[0])]) and not order.is_behind(load)
        boxes.append(_loaded_box(forms, load, machine) if is_free else None)
    parents = [key(load.parent.operation) for load in loads]
    failed = {parent for parent, box in zip(parents, boxes, strict=True) if box is None}
    out.loops = [loop for number, loop in loops.items() if number not in failed]
    if out.loops:
        of_loads = zip(loads, boxes, parents, strict=True)
        out.loads = [(load, box) for load, box, parent in of_loads if box is not None and not (parent in loops and parent in failed)]
        if not order.points and not any(op.name in _ATOMICS for op in ops):
            out.stores = _stores(forms, accesses, all(box.is_known for _, box in out.loads))
    return out


def _by_argument(ops: list[ir.Operation]) -> dict[ir.Value, list[ir.Operation]] | None:
    """Return what accesses the memory of each argument, or None if something may access any."""
    out: dict[ir.Value, list[ir.Operation]] = {}
    for op in ops:
        if may_do_anything(op):
            return None
        if op.name in GLOBAL_WRITES or op.name in _READS:
            base = base_argument(op.operands[0])
            if base is not None:
                out.setdefault(base, []).append(op)
            elif op.name in GLOBAL_WRITES or isinstance(op.results[0].type, ir.RankedTensorType):
                return None
    return out


# Loads


def _is_wgmma(op: ir.Operation, machine: Machine) -> bool:
    return op.name == "tile.dot" and plan_dot(op, machine).kind == "wgmma"


def _users(value: ir.Value, order: tuple[int, ...] | None = None) -> Iterator[tuple[ir.Operation, int | None]]:
    """Yield the operations that use a value, as it is or transposed, each with the dimension of the value that is K there (None: it is no
    operand of a dot). `order`: the dimensions of what `value` was made of by transposition."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "tile.trans":
            dims = tuple(ir.DenseI32ArrayAttr(user.attributes["order"]))
            yield from _users(user.results[0], dims if order is None else tuple(order[d] for d in dims))
        elif user.name == "tile.dot" and use.operand_number < 2:
            axis = 1 - use.operand_number
            yield user, axis if order is None else order[axis]
        else:
            yield user, None


def _loaded_box(forms: Forms, load: ir.Operation, machine: Machine) -> Box | None:
    """Return the box that a load covers if TMA can load it in its place for wgmmas, or None."""
    pointer, *rest = load.operands
    if sees_others(load):
        return None
    if len(rest) > 1 and not is_zero(rest[1]):
        return None
    size = element_bytes(load.results[0].type.element_type)
    box = _box(forms, pointer, rest[0] if rest else None, size, False, load.results[0])
    if box is None:
        return None
    for user, axis in _users(load.results[0]):
        # wgmma reads types of other than 16 bits as TMA leaves them if they are contiguous along K.
        if axis is None or not _is_wgmma(user, machine) or (size != 2 and axis != box.dimensions[-1].axis):
            return None
    return box


def _box(forms: Forms, pointer: ir.Value, mask: ir.Value | None, size: int, is_known: bool, loaded: ir.Value | None = None) -> Box | None:
    box = box_of(forms, pointer, mask, size, is_known, loaded)
    shape = None if box is None else tuple(dim.size for dim in box.dimensions)
    return None if shape is None or shape[-1] * size < _TMA_BYTES or tma_layout(shape, 8 * size, True) is None else box


# Stores


def _stores(forms: Forms, accesses: dict[ir.Value, list[ir.Operation]], is_known: bool) -> list[tuple[ir.Operation, Box]]:
    """Return the stores to arrays that a kernel only stores boxes to. `is_known`: nothing that may fail at launch, since no load may
    either."""
    out = []
    for ops in accesses.values():
        boxes = [(op, _stored_box(forms, op, is_known)) for op in ops]
        if all(box is not None and _moves(forms, op, box) for op, box in boxes) and _are_apart([box for _, box in boxes]):
            out += boxes
    return out


def _moves(forms: Forms, store: ir.Operation, box: Box) -> bool:
    """Whether a store is to another place in each iteration of each loop around it."""
    op = store.parent.operation
    while op.name != "func.func":
        if op.name in LOOPS and not any(forms.changes_in(op, dim.coordinate) for dim in box.dimensions):
            return False
        op = op.parent.operation
    return True


def _are_apart(boxes: list[Box]) -> bool:
    """Whether boxes lie a number of steps of a dimension away from each other that is at least their size."""
    return all(any(_steps(_start(b) - _start(a), dim.stride) >= dim.size for dim in a.dimensions) for a, b in combinations(boxes, 2))


def _start(box: Box) -> Polynomial:
    """Return the distance of a box's first element from the argument."""
    start = box.base
    for dim in box.dimensions:
        start = start + dim.coordinate * dim.stride
    return start


def _steps(distance: Polynomial, stride: Polynomial) -> int:
    """Return how many times a stride a distance is, 0 if that is not plain to see."""
    if len(distance.terms) != 1 or len(stride.terms) != 1:
        return 0
    found = quotient(distance.terms[0], stride.terms[0])
    return abs(found[1]) if found is not None and not found[0] else 0


def _stored_box(forms: Forms, store: ir.Operation, is_known: bool) -> Box | None:
    """Return the box that a store covers if TMA can store it, or None."""
    if store.name != _STORE or "cache" in store.attributes or "evict" in store.attributes:
        return None
    pointer, value, *mask = store.operands
    if not isinstance(value.type, ir.RankedTensorType) or value.type.rank < 2:
        return None
    size = element_bytes(value.type.element_type)
    box = _box(forms, pointer, mask[0] if mask else None, size, is_known)
    if box is None or [dim.axis for dim in box.dimensions if dim.axis is not None] != list(range(value.type.rank)):
        return None
    # The H200 clips what it stores to multiples of 16 bytes only.
    end = box.dimensions[-1].extent
    clips = end is not None and not is_aligned(forms, end, size) and (is_known or end.number is not None)
    return None if clips or size * prod(value.type.shape) < _MIN_STORE_BYTES else box
