"""`tilegpu-assign-layouts`: from the tile dialect to tilegpu. Every tensor gets a layout.

Before: functions over tensors without layouts, tensor descriptors lowered.
After: every tensor type carries `#tilegpu.linear`, conversions are explicit `tilegpu.convert_layout` operations next to the value they
convert, accesses carry `tilegpu.vector` (i32): the number of neighbouring elements that one access may cover, proven contiguous, aligned
and under one mask bit in the access's layout. Loads of whole vectors that TMA could copy as they lie in memory carry `tilegpu.run`. The
module carries the `tilegpu.*` attributes of `Machine`. Dots are still `tile.dot`, with the accumulator in the layout of the instruction
that will compute it and the operands in whichever layout they come.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.analysis.access_layouts import mask_of
from tilewright.compiler.analysis.axis_info import AxisAnalysis, analyze, element_bytes
from tilewright.compiler.analysis.layout_rules import operand_layout
from tilewright.compiler.analysis.layout_solver import LayoutSolver
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.analysis.tree import Node, Tree
from tilewright.compiler.encoding import with_layout
from tilewright.compiler.layouts import LinearLayout, vector_width
from tilewright.dialects import tile

from .building import i32_attr
from .registry import register

#: Attribute (unit) of loads of vectors that lie in memory as TMA copies them without a tensor map.
RUN = "tilegpu.run"
_BULK_BYTES = 16


@register("tilegpu-assign-layouts")
def assign_layouts(
    module: ir.Operation, *, target: str = "cuda:80", num_warps: int = 4, threads_per_warp: int = 32, num_ctas: int = 1
) -> None:
    """Run on a module; see the file's docstring."""
    machine = Machine(target, num_warps, threads_per_warp, num_ctas)
    machine.write(module)
    functions = [op.operation for op in module.regions[0].blocks[0].operations if op.operation.name == "func.func"]
    for function in functions:
        if len(function.regions[0].blocks):
            axis = analyze(function)
            solution = LayoutSolver(Tree(function), axis, machine)
            rewriter = LayoutRewriter(solution)
            widths = {node: rewriter.access_width(node, axis) for node in solution.accesses}
            runs = [node for node in solution.accesses if _is_run(node, axis, rewriter.tensors[node.operands[0]])]
            rewriter.run(function)
            for node, width in widths.items():
                node.op.attributes["tilegpu.vector"] = i32_attr(width, function.context)
            for node in runs:
                node.op.attributes[RUN] = ir.UnitAttr.get(function.context)


def _is_run(node: Node, axis: AxisAnalysis, pointers: ir.Type) -> bool:
    """Whether an access is a load of a vector that lies in memory as a whole, from a multiple of 16 bytes on, a multiple of that long."""
    if node.op.name != "tile.load" or len(node.operands) > 1 or pointers.rank != 1:
        return False
    info, length = axis.get(node.operands[0]), pointers.shape[0]
    size = length * element_bytes(tile.pointee(pointers.element_type))
    return info.contiguity[0] >= length and info.divisibility[0] % _BULK_BYTES == 0 and size % _BULK_BYTES == 0


class LayoutRewriter:
    """Puts a solution into the IR, in place: types are set, flexible operations are set for the first layout wanted and cloned for
    others."""

    def __init__(self, solution: LayoutSolver):
        self.solution = solution
        self.tensors = solution.tree.tensors
        self.types: dict[tuple[ir.Type, LinearLayout], ir.Type] = {}
        self.made: dict[tuple[ir.Value, LinearLayout], ir.Value] = {}
        self.placed: set[ir.Value] = set()

    def run(self, function: ir.Operation) -> None:
        """Rewrite one function."""
        solution, tree = self.solution, self.solution.tree
        for value, layout in solution.homes.items():
            value.set_type(self._type(value, layout))
        for node, wanted in solution.wants.items():
            for i, layout in enumerate(wanted):
                if layout is not None:
                    new = self._get(node.operands[i], layout)
                    if new != node.operands[i]:
                        node.op.operands[i] = new
        for node in reversed(list(tree.body.walk())):
            if node.results and node.results[0] in solution.flexible and node.results[0] not in self.placed:
                node.op.erase()
        self._set_signature(function)

    def _type(self, value: ir.Value, layout: LinearLayout) -> ir.Type:
        key = (self.tensors[value], layout)
        type_ = self.types.get(key)
        if type_ is None:
            type_ = self.types[key] = with_layout(*key)
        return type_

    def access_width(self, node: Node, axis: AxisAnalysis) -> int:
        """Return the elements of one access in the layout that was decided for it."""
        pointer = node.operands[0]
        layout = self.solution.wants[node][0]
        dim = self.solution.accesses[node].order[0]
        size = element_bytes(tile.pointee(self.tensors[pointer].element_type))
        return vector_width(layout, dim, axis.access_width(pointer, mask_of(node), dim), 8 * size)

    def _get(self, value: ir.Value, layout: LinearLayout) -> ir.Value:
        """Return `value` in `layout`: itself, made again, or converted."""
        home = self.solution.homes.get(value)
        if home == layout:
            return value
        key = (value, layout)
        made = self.made.get(key)
        if made is None:
            made = self.made[key] = self._make(value, layout) if home is None else self._convert(value, layout)
        return made

    def _convert(self, value: ir.Value, layout: LinearLayout) -> ir.Value:
        owner = self.solution.tree.defs.get(value)
        if owner is None:
            block = value.owner
            ip, loc = ir.InsertionPoint.at_block_begin(block), value.location
        else:
            ip, loc = ir.InsertionPoint.after(owner.op), owner.op.location
        op = ir.Operation.create("tilegpu.convert_layout", [self._type(value, layout)], [value], loc=loc, ip=ip)
        return op.results[0]

    def _make(self, value: ir.Value, layout: LinearLayout) -> ir.Value:
        node = self.solution.flexible[value]
        tree = self.solution.tree
        operands = [self._get(v, operand_layout(node, tree.shape(v), layout)) if v in self.tensors else v for v in node.operands]
        op = node.op
        if value in self.placed:
            op = op.clone(ip=ir.InsertionPoint.after(op))
        self.placed.add(value)
        for i, operand in enumerate(operands):
            if operand != op.operands[i]:
                op.operands[i] = operand
        result, type_ = op.results[0], self._type(value, layout)
        result.set_type(type_)
        if node.name == "arith.constant":
            op.attributes["value"] = _retyped(op.attributes["value"], type_)
        return result

    def _set_signature(self, function: ir.Operation) -> None:
        """Make the function's type follow its arguments and returns, for helper functions with tensors in their signature."""
        body = self.solution.tree.body
        if not any(v in self.tensors for v in (*body.args, *body.terminator.operands)):
            return
        inputs = [a.type for a in body.args]
        results = [v.type for v in body.terminator.op.operands]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results, function.context))


def _retyped(attr: ir.Attribute, type_: ir.Type) -> ir.Attribute:
    """Return a dense constant with another tensor type of the same shape."""
    if attr.is_splat:
        return ir.DenseElementsAttr.get_splat(type_, attr.get_splat_value())
    return ir.DenseElementsAttr.get([attr.get_splat_value()], type_) if len(attr) == 1 else _dense(attr, type_)


def _dense(attr: ir.DenseElementsAttr, type_: ir.Type) -> ir.Attribute:
    element = type_.element_type
    make = ir.FloatAttr.get if isinstance(attr, ir.DenseFPElementsAttr) else ir.IntegerAttr.get
    return ir.DenseElementsAttr.get([make(element, x) for x in attr], type_)
