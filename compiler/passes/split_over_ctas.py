"""`tile-split-over-ctas`: a program that a cluster of CTAs runs becomes the program of each of them.

Before: functions of a kernel compiled for `num_ctas` > 1, on whole tensors.
After: every tensor is the part that one CTA holds (`analysis.cluster_split`), so all later passes work on a CTA as if it were alone:

- ranges and the corners of a descriptor's blocks begin where the part does, by `tile.cluster_rank`;
- `tile.exchange` moves data between CTAs where an operation wants another split than its operand has;
- a reduction along a dimension that is split combines the CTA's part first, then the parts of all CTAs, which an exchange brings together;
  a scan puts what the parts before combine to in front of its own;
- what several CTAs hold copies of, one of them stores, adds or prints.

Scalars are the same in all CTAs, except those made of the rank, on which no branch depends that holds an exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

from mlir import ir

from tilewright.compiler.analysis.axis_info import AxisAnalysis
from tilewright.compiler.analysis.cluster_split import ClusterSolver, copies, is_contiguous, make_split, moves_along, part_shape
from tilewright.compiler.analysis.layout_rules import integer
from tilewright.compiler.analysis.machine import Machine
from tilewright.compiler.analysis.specialization import MULTICAST
from tilewright.compiler.analysis.tree import Node, Tree
from tilewright.compiler.layouts import LinearLayout, slice_dim
from tilewright.dialects import tile

from .assign_layouts import LayoutRewriter
from .building import Builder, defining, i32_array, i32_attr
from .diagnostics import user_error
from .registry import register

_EQ, _NE = 0, 1
# The operand that is the mask, where there may be one.
_MASKED = {"tile.store": 2, "tile.atomic_rmw": 2, "tile.atomic_store": 2, "tile.atomic_load": 1}
_ATOMICS = frozenset({"tile.atomic_rmw", "tile.atomic_cas", "tile.atomic_load", "tile.atomic_poll"})


@register("tile-split-over-ctas")
def split_over_ctas(module: ir.Operation, *, target: str = "cuda:90", num_ctas: int = 1) -> None:
    """Run on a module; see the file's docstring."""
    machine = Machine(target, 4, 32, num_ctas)
    for function in [op.operation for op in module.regions[0].blocks[0].operations if op.operation.name == "func.func"]:
        if len(function.regions[0].blocks):
            _Splitter(ClusterSolver(Tree(function), AxisAnalysis(), machine)).run(function)


class _Splitter(LayoutRewriter):
    """Puts the splits of a function into its IR, in place."""

    def __init__(self, solution: ClusterSolver):
        super().__init__(solution)
        self.context = solution.tree.body.block.owner.context
        entry = Builder(ir.InsertionPoint.at_block_begin(solution.tree.body.block), solution.tree.body.block.owner.location)
        self.rank = entry.value("tile.cluster_rank", ir.IntegerType.get_signless(32, self.context), [])
        self.last = self.rank.owner.operation  # the last operation that makes a scalar of the rank
        self.scalars: dict[object, ir.Value] = {}
        self.descriptors: dict[tuple[ir.Value, tuple[int, ...]], ir.Value] = {}

    def run(self, function: ir.Operation) -> None:
        """Rewrite one function."""
        nodes = [node for node in self.solution.tree.body.walk() if node.name in _RULES]
        super().run(function)
        for node in nodes:
            _RULES[node.name](self, node)

    # Types and values

    def _type(self, value: ir.Value, layout: LinearLayout) -> ir.Type:
        type_ = self.tensors[value]
        return ir.RankedTensorType.get(part_shape(layout), type_.element_type)

    def _convert(self, value: ir.Value, layout: LinearLayout) -> ir.Value:
        return self.exchange(Builder.after_definition(value), [value], self.solution.homes[value], layout)[0]

    def _make(self, value: ir.Value, layout: LinearLayout) -> ir.Value:
        node = self.solution.flexible[value]
        made = super()._make(value, layout)
        if node.name != "tile.range" or copies(layout) == self.solution.machine.num_ctas - 1:
            return made
        op = made.owner.operation
        start, (size,) = integer(op, "start"), part_shape(layout)
        op.attributes["end"] = i32_attr(start + size, self.context)
        return self._positions(Builder.after(op), made, start, layout)

    def _positions(self, build: Builder, part: ir.Value, start: int, layout: LinearLayout) -> ir.Value:
        """Which numbers of a whole range this CTA's `part`, numbered from `start`, stands for."""
        if not is_contiguous(layout):
            if start:
                raise user_error(
                    part.owner.operation, "a range that does not start at 0 cannot be split over CTAs like this; use num_ctas=1"
                )
            for step in sorted(c[0] for c in layout.bases["block"] if c[0]):
                high = build.binary("arith.andi", part, build.splat(build.i32(-step), part.type))
                part = build.binary("arith.addi", part, high)
        return build.binary("arith.addi", part, build.splat(self.origin(layout, 0), part.type))

    def exchange(
        self, build: Builder, values: Sequence[ir.Value], before: LinearLayout, after: LinearLayout, from_first: bool = False
    ) -> list[ir.Value]:
        """`values`, split as `before` says, split as `after` says."""
        types = [ir.RankedTensorType.get(part_shape(after), v.type.element_type) for v in values]
        attributes = {
            "shape": i32_array(before.out_sizes, self.context),
            "from": i32_array([c for coords in before.bases["block"] for c in coords], self.context),
            "to": i32_array([c for coords in after.bases["block"] for c in coords], self.context),
        }
        if from_first:
            attributes["from_first"] = ir.UnitAttr.get(self.context)
        return list(build.op("tile.exchange", types, list(values), attributes).results)

    # Scalars of the rank, made once at the function's entry

    def once(self, key: object, make: Callable[[Builder], ir.Value]) -> ir.Value:
        """The scalar that `make` builds at the entry the first time that `key` is asked for."""
        if key not in self.scalars:
            value = self.scalars[key] = make(Builder.after(self.last))
            self.last = value.owner.operation
        return self.scalars[key]

    def origin(self, split: LinearLayout, dim: int) -> ir.Value:
        """The first coordinate of this CTA's part along a dimension, i32."""
        steps = tuple((bit, coords[dim]) for bit, coords in enumerate(split.bases["block"]) if coords[dim])
        return self.once(steps, lambda build: self._origin(build, steps))

    def _origin(self, build: Builder, steps: tuple[tuple[int, int], ...]) -> ir.Value:
        runs: list[tuple[int, int, int]] = []  # (first bit, number of bits, step of the first): bits that move together
        for bit, step in steps:
            if runs and runs[-1][0] + runs[-1][1] == bit and runs[-1][2] << runs[-1][1] == step:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1, runs[-1][2])
            else:
                runs.append((bit, 1, step))
        parts = []
        for first, count, step in runs:
            part = build.binary("arith.shrui", self.rank, build.i32(first)) if first else self.rank
            part = build.binary("arith.andi", part, build.i32((1 << count) - 1))
            parts.append(build.binary("arith.muli", part, build.i32(step)))
        return reduce(lambda a, b: build.binary("arith.addi", a, b), parts)

    def is_first(self, mask: int) -> ir.Value:
        """i1: whether this CTA is the first of those whose ranks differ in `mask`."""

        def make(build: Builder) -> ir.Value:
            predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, self.context), _EQ)
            bits = build.binary("arith.andi", self.rank, build.i32(mask))
            return build.value("arith.cmpi", ir.IntegerType.get_signless(1, self.context), [bits, build.i32(0)], {"predicate": predicate})

        return self.once(("first", mask), make)

    def only_first(self, op: ir.Operation, mask: int) -> None:
        """Let only the first of the CTAs whose ranks differ in `mask` run an operation without results."""
        if mask:
            branch = Builder.before(op).op("scf.if", [], [self.is_first(mask)], regions=2)
            block = branch.regions[0].blocks.append()
            block.append(op)
            ir.Operation.create("scf.yield", loc=op.location, ip=ir.InsertionPoint(block))

    # Operations

    def split_of(self, node: Node, operand: int) -> LinearLayout:
        """The split in which an operation takes a tensor operand."""
        return self.solution.wants[node][operand]

    def reduce(self, node: Node) -> None:
        """Combine the results of the CTAs among which the axis is split."""
        split, axis = self.split_of(node, 0), integer(node.op, "axis")
        moving = moves_along(split, axis)
        if moving:
            build = Builder.after(node.op)
            self._combine(build, node.op, node.results, self._without(split, axis), moving)

    @staticmethod
    def _without(split: LinearLayout, axis: int) -> LinearLayout:
        sliced = slice_dim(split, axis)
        return make_split(sliced.out_sizes, sliced.column("block"))

    def _combine(self, build: Builder, op: ir.Operation, results: list[ir.Value], split: LinearLayout, moving: list[int]) -> None:
        """Replace `results`, partial results of `op` in the CTAs that the rank's bits `moving` tell apart, by what they combine to."""
        users = [(use.owner.operation, use.operand_number, i) for i, result in enumerate(results) for use in result.uses]
        gathered = self._gather_parts(build, results, split, moving)
        again = op.clone(ip=build.ip)
        for i, value in enumerate(gathered):
            again.operands[i] = value
        again.attributes["axis"] = i32_attr(0, self.context)
        for user, number, i in users:
            user.operands[number] = again.results[i]

    def _gather_parts(self, build: Builder, values: list[ir.Value], split: LinearLayout, moving: list[int]) -> list[ir.Value]:
        """`values` of the CTAs that the bits `moving` tell apart, the lowest bit first, stacked along a new first dimension."""
        count = 1 << len(moving)
        stacked = [self._with_dimension(build, value) for value in values]
        shape = (count, *split.out_sizes)
        total = prod(split.out_sizes)
        columns = list(split.column("block"))
        after = make_split(shape, tuple(columns))
        for i, bit in enumerate(moving):
            columns[bit] = total << i
        return self.exchange(build, stacked, make_split(shape, tuple(columns)), after)

    def _with_dimension(self, build: Builder, value: ir.Value) -> ir.Value:
        type_ = value.type
        if not isinstance(type_, ir.RankedTensorType):
            return build.value("tile.splat", ir.RankedTensorType.get([1], type_), [value])
        wider = ir.RankedTensorType.get([1, *type_.shape], type_.element_type)
        return build.value("tile.expand_dims", wider, [value], {"axis": i32_attr(0, self.context)})

    def scan(self, node: Node) -> None:
        """Put what the CTAs before this one along the axis combine to (behind it, in a reverse scan) in front of its part's prefixes."""
        split, axis = self.split_of(node, 0), integer(node.op, "axis")
        moving = moves_along(split, axis)
        if not moving:
            return
        build, op = Builder.after(node.op), node.op
        reverse = "reverse" in op.attributes
        users = [(use.owner.operation, use.operand_number, i) for i, result in enumerate(node.results) for use in result.uses]
        # The total of a part, in the scan's order.
        totals = self._again(build, op, "tile.reduce", list(op.operands), axis, [_sliced(v.type, axis) for v in op.operands], reverse)
        parts = self._gather_parts(build, totals, self._without(split, axis), moving)
        scanned = self._again(build, op, "tile.scan", parts, 0, [v.type for v in parts])
        size, count = part_shape(split)[axis], 1 << len(moving)
        own = build.binary("arith.shrui", self.origin(split, axis), build.i32(size.bit_length() - 1))
        step, end = (1, count - 1) if reverse else (-1, 0)
        other = build.binary("arith.andi", build.binary("arith.addi", own, build.i32(step)), build.i32(count - 1))
        before = [self._row(build, value, other, result.type, axis) for value, result in zip(scanned, node.results, strict=True)]
        joined = build.op("tile.map_elementwise", [r.type for r in node.results], [*before, *node.results], regions=1)
        copy_region(op, joined)
        not_equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, self.context), _NE)
        i1 = ir.IntegerType.get_signless(1, self.context)
        has = build.value("arith.cmpi", i1, [own, build.i32(end)], {"predicate": not_equal})
        for i, (result, value) in enumerate(zip(node.results, joined.results, strict=True)):
            chosen = build.value("arith.select", result.type, [build.splat(has, result.type), value, result])
            for user, number, j in users:
                if i == j:
                    user.operands[number] = chosen

    def _again(
        self, build: Builder, op: ir.Operation, name: str, sources: list[ir.Value], axis: int, types: list[ir.Type], swapped: bool = False
    ) -> list[ir.Value]:
        """The results of an operation with the region of the reduction or scan `op`."""
        attributes = {key: op.attributes[key] for key in op.attributes if key != "reverse" or name == "tile.scan"}
        new = build.op(name, types, sources, {**attributes, "axis": i32_attr(axis, self.context)}, regions=1)
        copy_region(op, new, swapped)
        return list(new.results)

    def _row(self, build: Builder, value: ir.Value, index: ir.Value, like: ir.Type, axis: int) -> ir.Value:
        """Row number `index` of a tensor, with the row's dimension moved to `axis` and repeated to the shape of `like`."""
        shape = [1, *list(value.type.shape)[1:]]
        indices = build.value("tile.splat", ir.RankedTensorType.get(shape, index.type), [index])
        row = build.value(
            "tile.gather", ir.RankedTensorType.get(shape, like.element_type), [value, indices], {"axis": i32_attr(0, self.context)}
        )
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
            moved = ir.RankedTensorType.get([shape[d] for d in order], like.element_type)
            row = build.value("tile.trans", moved, [row], {"order": i32_array(order, self.context)})
        return build.value("tile.broadcast", like, [row])

    def histogram(self, node: Node) -> None:
        """Add up the counts of the CTAs' parts."""
        split = self.split_of(node, 0)
        moving = [bit for bit in range(self.solution.bits) if not copies(split) >> bit & 1]
        if not moving:
            return
        result = node.results[0]
        build, element = Builder.after(node.op), result.type.element_type
        users = [(use.owner.operation, use.operand_number) for use in result.uses]
        whole = make_split(tuple(result.type.shape), (0,) * self.solution.bits)
        (parts,) = self._gather_parts(build, [result], whole, moving)
        total = build.op("tile.reduce", [result.type], [parts], {"axis": i32_attr(0, self.context)}, regions=1)
        block = total.regions[0].blocks.append(element, element, arg_locs=[build.loc] * 2)
        inside = Builder(ir.InsertionPoint(block), build.loc)
        inside.op("tile.yield", [], [inside.binary("arith.addi", *block.arguments)])
        for user, number in users:
            user.operands[number] = total.results[0]

    def masked(self, node: Node) -> None:
        """A store or atomic operation: of copies one is enough."""
        if node.operands[0] not in self.tensors:
            self.share(node, None)
            return
        split, op = self.split_of(node, 0), node.op
        mask = copies(split)
        if mask:
            if node.name not in _MASKED:
                raise user_error(op, f"{node.name[5:]} on fewer elements than CTAs has no mask to keep the others off; use num_ctas=1")
            build = Builder.before(op)
            first = self.is_first(mask)
            position = _MASKED[node.name]
            if len(op.operands) > position:
                like = op.operands[position]
                op.operands[position] = build.binary("arith.andi", like, build.splat(first, like.type))
            else:
                self._add_mask(node, build.splat(first, op.operands[0].type))
        self.share(node, split if mask else None)

    def _add_mask(self, node: Node, mask: ir.Value) -> None:
        """Create the operation again, with a mask."""
        op = node.op
        attributes = {name: op.attributes[name] for name in op.attributes if name != "operandSegmentSizes"}
        types = [r.type for r in op.results]
        new = Builder.before(op).op(op.name, types, [*op.operands, mask], attributes)
        for old, result in zip(op.results, new.results, strict=True):
            old.replace_all_uses_with(result)
        op.erase()
        node.op, node.results = new, list(new.results)

    def share(self, node: Node, split: LinearLayout | None) -> None:
        """Give the result that one CTA has to all that hold copies; `split` None stands for a scalar."""
        if not node.results or next(iter(node.results[0].uses), None) is None:
            return
        is_scalar = node.operands[0] not in self.tensors
        if not is_scalar and split is None:
            return
        result, build = node.results[0], Builder.after(node.op)
        users = [(use.owner.operation, use.operand_number) for use in result.uses]
        if is_scalar:
            split = make_split((1,), (0,) * self.solution.bits)
            (shared,) = self.exchange(build, [self._with_dimension(build, result)], split, split, True)
            shared = build.value("tile.unsplat", result.type, [shared])
        else:
            (shared,) = self.exchange(build, [result], split, split, True)
        for user, number in users:
            user.operands[number] = shared

    def volatile(self, node: Node) -> None:
        """A scalar that others may change: all CTAs go on with what the first one has read."""
        if "is_volatile" in node.op.attributes:
            self.share(node, None)

    def load_block(self, node: Node) -> None:
        """A block of a descriptor: the box of the part, at its corner."""
        split = self.solution.homes[node.results[0]]
        self._move_block(node, split, 1)
        if copies(split):
            node.op.attributes[MULTICAST] = i32_attr(copies(split), self.context)

    def store_block(self, node: Node) -> None:
        split = self.split_of(node, 1)
        self._move_block(node, split, 2)
        self.only_first(node.op, copies(split))

    def store_rows(self, node: Node) -> None:
        self.only_first(node.op, copies(self.split_of(node, 2)))

    def _move_block(self, node: Node, split: LinearLayout, first_index: int) -> None:
        op = node.op
        op.operands[0] = self._descriptor(op, part_shape(split))
        build = Builder.before(op)
        for dim in range(split.rank):
            if any(coords[dim] for coords in split.bases["block"]):
                index = op.operands[first_index + dim]
                op.operands[first_index + dim] = build.binary("arith.addi", index, self.origin(split, dim))

    def _descriptor(self, user: ir.Operation, shape: tuple[int, ...]) -> ir.Value:
        """The descriptor of `user` for blocks of `shape`."""
        value = user.operands[0]
        block, element, _ = tile.desc_info(value.type)
        if tuple(block) == shape:
            return value
        key = (value, shape)
        if key not in self.descriptors:
            op = defining(value)
            if op is None or op.name != "tile.make_descriptor":
                raise user_error(
                    user, "with num_ctas > 1, a tensor descriptor must be made in the function that uses it, outside of branches"
                )
            operands, attributes = list(op.operands), {name: op.attributes[name] for name in op.attributes}
            self.descriptors[key] = Builder.after(op).value(
                "tile.make_descriptor", tile.desc_type(list(shape), element), operands, attributes
            )
        return self.descriptors[key]

    def print(self, node: Node) -> None:
        self.only_first(node.op, self.solution.machine.num_ctas - 1)


def copy_region(op: ir.Operation, into: ir.Operation, swapped: bool = False) -> None:
    """Give `into` the region of a reduction or scan; `swapped`: its two groups of operands change places."""
    source = op.regions[0].blocks[0]
    block = into.regions[0].blocks.append(*[a.type for a in source.arguments], arg_locs=[op.location] * len(source.arguments))
    arguments = list(block.arguments)
    half = len(arguments) // 2
    if swapped:
        arguments = arguments[half:] + arguments[:half]
    values = dict(zip(source.arguments, arguments, strict=True))
    inside = Builder(ir.InsertionPoint(block), op.location)
    for inner in source.operations:
        inside.clone(inner.operation, values)


def _sliced(type_: ir.Type, axis: int) -> ir.Type:
    """The type of a tensor's reduction along an axis."""
    shape = list(type_.shape)
    del shape[axis]
    return ir.RankedTensorType.get(shape, type_.element_type) if shape else type_.element_type


_RULES = {
    "tile.scan": _Splitter.scan,
    "tile.reduce": _Splitter.reduce,
    "tile.histogram": _Splitter.histogram,
    "tile.load": _Splitter.volatile,
    "tile.descriptor_load": _Splitter.load_block,
    "tile.print": _Splitter.print,
    "tile.descriptor_store": _Splitter.store_block,
    "tile.descriptor_reduce": _Splitter.store_block,
    "tile.descriptor_scatter": _Splitter.store_rows,
    **dict.fromkeys(("tile.store", "tile.atomic_store", *sorted(_ATOMICS)), _Splitter.masked),
}
