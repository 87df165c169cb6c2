"""Which product of a loop is worth issuing an iteration early.

Where several products of an iteration wait for work on the result of the first (attention's derivative: dv, dq and dk for the
exponentials of q k^T), tensor cores run dry while that work goes on. The first product needs nothing but loaded blocks. Issued an iteration
early, behind the first product that waits for it, it has been computed when its iteration begins, and the work on its result runs beside
products of both iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from tilewright.compiler.multiprocessor import REGISTERS, THREAD_REGISTERS
from tilewright.dialects import tilegpu

from .loop_slice import Loop
from .register_pressure import words_of
from .schedule import EARLY, LATE, given
from .wgmma_loops import issues

#: Registers of a thread for what is not counted: addresses, descriptors, values on their way. Attention's derivative with blocks of 64 rows
#: and 128 columns of 128 elements: 224 counted, 250 taken by ptxas.
_OTHER_REGISTERS = 31
_WAIT = "tilegpu.wgmma_wait"
#: What values that stay in registers come from; others are made where they are needed.
_SOURCES = frozenset({"tile.load", "tile.reduce", "tilegpu.local_load", _WAIT})


@dataclass(frozen=True)
class Early:
    """A product that may be issued an iteration early: positions of it, of its wait, and of the first product that works on its result,
    behind which the next iteration's goes. `registers`: what a thread then needs; `more`: how many of them only since it is early."""

    issue: int
    wait: int
    user: int
    registers: int
    more: int

    def programs(self, threads: int, early: bool) -> int:
        """Return how many programs of so many threads the registers of a multiprocessor are enough for, if it is early or not."""
        return REGISTERS // (threads * min(self.registers - (0 if early else self.more), THREAD_REGISTERS))


def early_product(loop: Loop, is_loaded: Callable[[ir.Value], bool], most: int = THREAD_REGISTERS) -> Early | None:
    """Return the product of a loop that should be issued early, if its schedule does not say otherwise. `is_loaded` tells of a buffer of
    the body whether it holds a block that copies bring iterations ahead; `most` are the registers of a thread."""
    found = issues(loop)
    if len(found) < 3:
        return None
    issue = loop.ops[found[0]]
    if given(issue, LATE) not in (None, EARLY) or not _starts_anew(issue):
        return None
    if not all(_is_ready(loop, v, is_loaded) for v in list(issue.operands)[:2]):
        return None
    wait = next(iter(issue.results[0].uses)).owner.operation
    if wait.name != _WAIT or len(wait.results) != 1:
        return None
    end = len(loop.ops) - 1
    result = wait.results[0]
    users = [loop.position(use.owner.operation) for use in result.uses]
    if not users or end in users:
        return None
    place = loop.position(wait)
    later = set(loop.dependents(result, range(place + 1, end)))
    waiting = [p for p in found[1:] if p in later]
    # Something must run while the result is worked on, and threads must meet over what they make of it: elsewhere the order as it was
    # written keeps tensor cores as busy (attention's derivative in two passes).
    if not waiting or not any(place < p < waiting[0] for p in found) or not any(reads_written(loop, p) for p in waiting):
        return None
    taken = _registers(loop, found[0], waiting[0], result) + _OTHER_REGISTERS
    if given(issue, LATE) is None and taken > most:
        return None
    return Early(found[0], place, waiting[0], taken, words_of(result.type))


def reads_written(loop: Loop, product: int) -> bool:
    """Whether a product reads a buffer that threads write in the body."""
    pending = [v for v in list(loop.ops[product].operands)[:2] if tilegpu.is_buffer(v.type)]
    while pending:
        position = loop.definition(pending.pop())
        if position is not None:
            op = loop.ops[position]
            if op.name == "tilegpu.local_alloc" and len(op.operands) and not is_block(op.operands[0]):
                return True
            pending += [v for v in op.operands if tilegpu.is_buffer(v.type)]
    return False


def is_block(value: ir.Value) -> bool:
    """Whether a value is loaded by a descriptor, so that a buffer that holds it is written by TMA."""
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "tile.descriptor_load"


def threads_of(op: ir.Operation) -> int:
    """Return the threads of the program that an operation belongs to."""
    while op.name != "builtin.module":
        op = op.parent.operation
    warps, width = (ir.IntegerAttr(op.attributes[name]).value for name in ("tilegpu.num_warps", "tilegpu.threads_per_warp"))
    return warps * width


def _starts_anew(issue: ir.Operation) -> bool:
    """Whether a wgmma multiplies buffers and adds to zeros."""
    left, right, *rest = issue.operands
    if not (tilegpu.is_buffer(left.type) and tilegpu.is_buffer(right.type)) or len(rest) != 1:
        return False
    return _is_zero(rest[0]) and sum(1 for _ in issue.results[0].uses) == 1


def _is_zero(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return False
    attribute = owner.operation.attributes["value"]
    return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat and attribute.get_splat_value().value == 0


def _is_ready(loop: Loop, buffer: ir.Value, is_loaded: Callable[[ir.Value], bool]) -> bool:
    """Whether a buffer holds what does not change in the loop, or a loaded block."""
    while (position := loop.definition(buffer)) is not None:
        if is_loaded(buffer):
            return True
        if loop.names[position] != "tilegpu.view":
            return False
        buffer = loop.ops[position].operands[0]
    return loop.is_outside(buffer)


def _registers(loop: Loop, first: int, user: int, result: ir.Value) -> int:
    """Return the registers of a thread that hold tensors where most do: when `user` or a later product has been issued, with the next
    result of `first`."""
    always = sum(words_of(v.type) for v in (*loop.args, result) if isinstance(v.type, ir.RankedTensorType))
    later = [p for p in issues(loop) if p >= user]
    return always + max(_held(loop, first, position, later, result) for position in later)


def _held(loop: Loop, first: int, product: int, later: list[int], result: ir.Value) -> int:
    """Return the registers of what is needed behind a product, or is its own; what is only carried on is counted already."""
    held, end = [], len(loop.ops) - 1
    for position in range(first + 1, product):
        if loop.names[position] in _SOURCES:
            held += [v for v in loop.ops[position].results if v != result and product < _last_use(loop, v) < end]
    lefts = [loop.ops[p].operands[0] for p in later if p >= product]
    held += [v for v in lefts if not tilegpu.is_buffer(v.type) and (loop.definition(v) or 0) < product]
    issue = loop.ops[product]
    if loop.carried_index(issue.operands[2]) is None:
        held.append(issue.results[0])
    return sum(words_of(v.type) for v in set(held))


def _last_use(loop: Loop, value: ir.Value) -> int:
    return max((loop.position(use.owner.operation) for use in value.uses), default=0)
