"""Which allocations a buffer value may point into, and the order of a function's ops.

A buffer is made by `tilegpu.local_alloc` and reaches its users through `tilegpu.slot`, `tilegpu.view`, block arguments and results of
structured control flow. One walk in program order finds the allocations behind every value; a loop-carried buffer is an alias of its initial
value and of what the body yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlir import ir

_DERIVED = frozenset({"tilegpu.slot", "tilegpu.view"})


@dataclass
class Step:
    """One op of a function in program order: the position of the op and of the last op inside its regions."""

    op: ir.Operation
    start: int
    end: int
    loops: tuple[Step, ...]


@dataclass
class Order:
    """The ops of a function in program order, with the allocations behind each buffer value."""

    steps: list[Step] = field(default_factory=list)
    roots: dict[ir.Value, frozenset[ir.Value]] = field(default_factory=dict)

    def roots_of(self, value: ir.Value) -> frozenset[ir.Value]:
        """Return the `local_alloc` results that `value` may point into; empty for a value that is no buffer."""
        return self.roots.get(value, frozenset())


def program_order(function: ir.Operation) -> Order:
    """Number the ops of `function` (regions included) and resolve its buffers."""
    order = Order()
    _visit(function, order, ())
    return order


def _children(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation


def _visit(parent: ir.Operation, order: Order, loops: tuple[Step, ...]) -> None:
    for op in _children(parent):
        step = Step(op, len(order.steps), len(order.steps), loops)
        order.steps.append(step)
        name = op.name
        if name == "tilegpu.local_alloc":
            order.roots[op.results[0]] = frozenset((op.results[0],))
        elif name in _DERIVED:
            order.roots[op.results[0]] = order.roots_of(op.operands[0])
        elif len(op.regions):
            is_loop = name in ("scf.for", "scf.while")
            _enter(op, order)
            _visit(op, order, (*loops, step) if is_loop else loops)
            _leave(op, order)
            step.end = len(order.steps) - 1


def _enter(op: ir.Operation, order: Order) -> None:
    """Bind the block arguments of a region op to its operands."""
    if op.name == "scf.for":
        _alias(order, op.regions[0].blocks[0].arguments[1:], list(op.operands)[3:])
    elif op.name == "scf.while":
        for region in op.regions:
            arguments = region.blocks[0].arguments
            _alias(order, arguments, list(op.operands)[: len(arguments)])


def _leave(op: ir.Operation, order: Order) -> None:
    """Bind the results of a region op to what its regions yield (and, for a loop, to its initial values)."""
    if op.name == "scf.for":
        _alias(order, op.results, list(op.operands)[3:])
    for region in op.regions:
        if len(region.blocks):
            terminator = list(region.blocks[0].operations)[-1].operation
            yielded = [v for v in terminator.operands if v in order.roots]
            if yielded:
                values = list(terminator.operands)
                _alias(order, op.results, values[len(values) - len(op.results) :])


def _alias(order: Order, targets: object, sources: list[ir.Value]) -> None:
    for target, source in zip(targets, sources, strict=False):
        found = order.roots.get(source)
        if found:
            order.roots[target] = order.roots_of(target) | found
