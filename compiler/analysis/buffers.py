"""Which shared-memory buffer a value names, followed from each `tilegpu.local_alloc` through views, slots and control flow.

Linear in the number of uses of buffers. Holds until the function changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir

from tilewright.dialects import tilegpu

# Ops whose results name the memory of an operand.
_FORWARDING = frozenset({"tilegpu.slot", "tilegpu.view", "arith.select"})
_TERMINATORS = frozenset({"scf.yield", "scf.condition"})
_FIRST_ITER_ARG = 3


@dataclass(slots=True, eq=False)
class Buffer:
    """One allocation. `uses` are the ops that access it or anything that names it."""

    alloc: ir.Operation
    uses: list[ir.Operation] = field(default_factory=list)


class Buffers:
    """The allocations of a function and the values that name them."""

    def __init__(self, allocs: list[ir.Operation]):
        self.buffers = [Buffer(alloc) for alloc in allocs]
        self._named: dict[ir.Value, set[int]] = {}
        for index, alloc in enumerate(allocs):
            self._follow(index, alloc.results[0])

    def of(self, value: ir.Value) -> list[int]:
        """Return the indices in `buffers` that a value may name, in order; empty for a value that is no buffer."""
        return sorted(self._named.get(value, ()))

    def _follow(self, index: int, root: ir.Value) -> None:
        work = [root]
        while work:
            value = work.pop()
            named = self._named.setdefault(value, set())
            if index in named:
                continue
            named.add(index)
            for use in value.uses:
                op = use.owner.operation
                targets = _forwarded(op, use.operand_number)
                work.extend(targets)
                if not targets:
                    self.buffers[index].uses.append(op)
                elif op.name in _TERMINATORS:
                    # What a loop carries, or a branch gives, lives through all of it.
                    self.buffers[index].uses.append(op.parent.operation)


def _forwarded(op: ir.Operation, operand: int) -> list[ir.Value]:
    """The values that name the memory of operand number `operand` of `op`."""
    name = op.name
    if name in _FORWARDING:
        return [op.results[0]]
    if name == "scf.for":
        return _loop_values(op, operand - _FIRST_ITER_ARG)
    if name == "scf.while":
        return [op.regions[0].blocks[0].arguments[operand]]
    if name == "scf.condition":
        loop = op.parent.operation
        return [loop.results[operand - 1], loop.regions[1].blocks[0].arguments[operand - 1]]
    if name == "scf.yield":
        parent = op.parent.operation
        if parent.name == "scf.for":
            return _loop_values(parent, operand)
        if parent.name == "scf.while":
            return [parent.regions[0].blocks[0].arguments[operand]]
        return [parent.results[operand]]
    if name == "tilegpu.warp_specialize":
        return [region.blocks[0].arguments[operand] for region in op.regions]
    if name == "tilegpu.warp_yield":
        return [op.parent.operation.results[operand]]
    return []


def _loop_values(loop: ir.Operation, index: int) -> list[ir.Value]:
    return [loop.regions[0].blocks[0].arguments[index + 1], loop.results[index]]


def constant_slot(op: ir.Operation) -> int | None:
    """Return the index of a `tilegpu.slot` op where that is a constant."""
    owner = op.operands[1].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.operation.attributes["value"]).value


def slot_count(value: ir.Value) -> int:
    """Return the number of slots of a buffer value, 1 where it has none."""
    return max(1, tilegpu.buffer_info(value.type)[3])
