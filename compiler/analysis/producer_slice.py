"""What the producer of a specialized kernel (`specialization`) has to compute to know where the blocks lie that it loads.

That is scalars, and tensors so small that every warp holds all of their elements: lists of experts or sequences, in which a program finds
its own. One warp can compute those again without asking another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlir import ir

from tilewright.compiler.encoding import layout_of
from tilewright.compiler.layouts import element_count

from .loop_slice import GLOBAL_WRITES, LAUNCH_SCALARS, base_argument, is_cheap
from .tree import key

#: What exchanges elements within a warp only, if the warp holds all of them.
_EXCHANGES = frozenset({"tile.reduce", "tile.scan"})
#: Elements of a tensor that a thread of the producer, which has few registers, may hold.
_MOST_ELEMENTS = 4


@dataclass
class Slice:
    """What the producer needs of the kernel, by `tree.key`: operations, and for each loop or branch that it has to run, the indices
    of the results (carried values) that it computes there."""

    ops: set[int] = field(default_factory=set)
    nests: dict[int, set[int]] = field(default_factory=dict)


class Slicer:
    """Collects what values depend on, backwards through loops and branches."""

    def __init__(self, ops: list[ir.Operation]):
        self.slice = Slice()
        self.pending: list[ir.Value] = []
        self.written = {base_argument(op.operands[0]) for op in ops if op.name in GLOBAL_WRITES}

    def run(self, loops: Iterable[ir.Operation], loads: Iterable[ir.Operation]) -> Slice | None:
        """Return what `loads` inside these loops, and those around them, need, or None if a warp cannot compute that."""
        for op in loops:
            while op.name != "func.func":
                self._nest(op)
                op = op.parent.operation
        for load in loads:
            self.pending += load.operands
        while self.pending:
            if not self._need(self.pending.pop()):
                return None
        return self.slice

    def _nest(self, op: ir.Operation) -> set[int]:
        """Have a loop or branch run; return the indices of what it computes so far."""
        found = self.slice.nests.get(key(op))
        if found is None:
            found = self.slice.nests[key(op)] = set()
            self.pending += list(op.operands)[: 3 if op.name == "scf.for" else 1]
        return found

    def _need(self, value: ir.Value) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block):
            if isinstance(value.type, ir.RankedTensorType):
                return False
            op = owner.owner.operation
            if op.name == "func.func":
                return True
            if op.name != "scf.for":
                return False
            return value.arg_number == 0 or self._result(op, value.arg_number - 1)
        op = owner.operation
        if op.name in ("scf.for", "scf.if"):
            return not isinstance(value.type, ir.RankedTensorType) and self._result(op, value.result_number)
        if key(op) not in self.slice.ops:
            if not (is_cheap(op.name) or op.name in LAUNCH_SCALARS or op.name in _EXCHANGES or self._is_constant_load(op)):
                return False
            if not all(_is_in_each_warp(v.type) for v in (*op.operands, *op.results)):
                return False
            self.slice.ops.add(key(op))
            self.pending += op.operands
        return True

    def _result(self, op: ir.Operation, index: int) -> bool:
        known = self._nest(op)
        if index not in known:
            known.add(index)
            if op.name == "scf.for":
                self.pending.append(op.operands[3 + index])
            blocks = [block for region in op.regions for block in region.blocks]
            self.pending += [block.operations[len(block.operations) - 1].operation.operands[index] for block in blocks]
        return True

    def _is_constant_load(self, op: ir.Operation) -> bool:
        """Whether an operation loads what the kernel does not write."""
        if op.name != "tile.load" or "is_volatile" in op.attributes:
            return False
        base = base_argument(op.operands[0])
        return base is not None and None not in self.written and base not in self.written


def _is_in_each_warp(type_: ir.Type) -> bool:
    """Whether every warp of every CTA holds a value: scalars, and tensors of few elements."""
    if not isinstance(type_, ir.RankedTensorType):
        return True
    layout = layout_of(type_)
    return not any(layout.column("warp")) and not any(layout.column("block")) and element_count(layout) <= _MOST_ELEMENTS
