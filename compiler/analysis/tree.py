"""A snapshot of a function as plain Python objects.

Reading operands, results and types through the bindings costs microseconds each, so an analysis that walks a body several times takes a
snapshot first. It holds for as long as no operation is erased.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field

from mlir import ir

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def key(op: ir.Operation) -> int:
    """Return what identifies an operation as long as it lives. (Its Python hash is structural: it changes with operands, types,
    attributes.)"""
    return _pointer_of(op._CAPIPtr, b"mlir.ir.Operation._CAPIPtr")


# Operations whose regions are control flow over tensors; other regions (the scalar functions of reductions) are not entered.
_CONTROL_FLOW = frozenset({"scf.for", "scf.if", "scf.while", "tilegpu.warp_specialize", "func.func", "builtin.module"})
_LOOPS = frozenset({"scf.for", "scf.while"})


@dataclass(slots=True, eq=False)
class Node:
    """One operation. `depth` counts the loops around it."""

    op: ir.Operation
    name: str
    operands: list[ir.Value]
    results: list[ir.Value]
    depth: int
    parent: Block | None
    blocks: list[Block] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Block:
    """One block of a control-flow operation; `owner` is that operation (None for a function's body)."""

    block: ir.Block
    args: list[ir.Value]
    owner: Node | None
    nodes: list[Node] = field(default_factory=list)

    @property
    def terminator(self) -> Node:
        return self.nodes[-1]

    def walk(self) -> Iterator[Node]:
        """Yield all nodes in program order, an operation before what its regions hold."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.walk()


class Tree:
    """The body of a function (its only block), with a node for each operation and the tensor type of each tensor value."""

    def __init__(self, function: ir.Operation):
        self._nodes: dict[int, Node] = {}
        self.defs: dict[ir.Value, Node] = {}
        self.depths: dict[ir.Value, int] = {}
        self.tensors: dict[ir.Value, ir.RankedTensorType] = {}
        self.body = self._block(function.regions[0].blocks[0], None, 0)

    def _value(self, value: ir.Value, depth: int) -> None:
        self.depths[value] = depth
        type_ = value.type
        if isinstance(type_, ir.RankedTensorType):
            self.tensors[value] = type_

    def _block(self, block: ir.Block, owner: Node | None, depth: int) -> Block:
        out = Block(block, list(block.arguments), owner)
        for arg in out.args:
            self._value(arg, depth)
        for op in block.operations:
            op = op.operation
            name = op.name
            node = Node(op, name, list(op.operands), list(op.results), depth, out)
            out.nodes.append(node)
            self._nodes[key(op)] = node
            for result in node.results:
                self.defs[result] = node
                self._value(result, depth)
            if name in _CONTROL_FLOW:
                inner = depth + (name in _LOOPS)
                node.blocks = [self._block(b, node, inner) for region in op.regions for b in region.blocks]
        return out

    def node_of(self, op: ir.Operation) -> Node | None:
        """Return the node of an operation, or None if that is not part of the snapshot."""
        return self._nodes.get(key(op))

    def shape(self, value: ir.Value) -> tuple[int, ...] | None:
        """Return the shape of a tensor value, or None for a scalar."""
        type_ = self.tensors.get(value)
        return None if type_ is None else tuple(type_.shape)
