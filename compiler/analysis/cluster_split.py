"""Decides which part of every tensor each CTA of a cluster holds. Reads the IR, changes nothing.

A split is a layout of "block" bits alone: for each bit of the CTA's rank the coordinate that it adds, a single bit of one dimension, or
zero for copies. A CTA holds the elements that the other bits of the coordinates reach, so operations that only move bits of coordinates
(`trans`, `reshape`, `join`, ...) work on parts as they do on the whole.

Splits flow from anchors as layouts do (`LayoutSolver`): a dot splits rows and columns of its result and wants its operands split the same
way, whole along K; all else is split along its first dimensions. What is made of scalars is made for each split that is wanted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from mlir import ir

from tilewright.compiler.layouts import LinearLayout
from tilewright.compiler.layouts.blocked import INPUTS
from tilewright.compiler.layouts.core import dim_shifts, log2_exact

from .access_layouts import Access
from .dot_plan import DotPlan
from .layout_rules import integer, is_elementwise, operand_layout
from .layout_solver import LayoutSolver, rows_stay_together
from .tree import Block, Node

# Rows and columns of a dot's result below which a CTA's part makes poor use of the matrix instructions.
_MIN_ROWS, _MIN_COLUMNS = 64, 32
_DOTS = ("tile.dot", "tile.dot_scaled")


def make_split(shape: tuple[int, ...], columns: tuple[int, ...]) -> LinearLayout:
    """Return the split of a tensor of `shape` whose rank bits add the packed coordinates `columns`."""
    return LinearLayout.from_columns({name: columns if name == "block" else () for name in INPUTS}, shape)


@lru_cache(maxsize=1024)
def default_split(shape: tuple[int, ...], bits: int, whole: tuple[int, ...] = ()) -> LinearLayout:
    """Return the split of a tensor over 2**`bits` CTAs along its first dimensions, those in `whole` left out; the highest bits of the rank
    take the outermost dimension, and the lowest ones make copies of what is too small."""
    columns = [0] * bits
    for dim, (size, shift) in enumerate(zip(shape, dim_shifts(shape), strict=True)):
        if dim not in whole:
            taken = min(bits, log2_exact(size))
            bits -= taken
            for i in range(taken):
                columns[bits + i] = (size >> taken) << i << shift
    return make_split(shape, tuple(columns))


@lru_cache(maxsize=4096)
def part_shape(split: LinearLayout) -> tuple[int, ...]:
    """Return the shape of one CTA's part."""
    shape = list(split.out_sizes)
    for coords in split.bases["block"]:
        for dim, coord in enumerate(coords):
            if coord:
                shape[dim] //= 2
    return tuple(shape)


@lru_cache(maxsize=4096)
def is_contiguous(split: LinearLayout) -> bool:
    """Whether each part is a block of the tensor: along each dimension the rank gives the highest bits."""
    part = part_shape(split)
    return all(coord == 0 or coord >= part[dim] for coords in split.bases["block"] for dim, coord in enumerate(coords))


def copies(split: LinearLayout) -> int:
    """Return the mask of the bits of the rank whose CTAs hold the same part."""
    return sum(1 << bit for bit, column in enumerate(split.column("block")) if not column)


def moves_along(split: LinearLayout, dim: int) -> list[int]:
    """Return the bits of the rank that move along a dimension, by ascending coordinate."""
    found = [(coords[dim], bit) for bit, coords in enumerate(split.bases["block"]) if coords[dim]]
    return [bit for _, bit in sorted(found)]


def project(split: LinearLayout, shape: tuple[int, ...], dims: tuple[int | None, ...]) -> LinearLayout:
    """Return the split of a tensor of `shape` whose dimension d is cut as dimension `dims[d]` of `split` is, or not at all for None."""
    shifts = dim_shifts(shape)
    columns = []
    for coords in split.bases["block"]:
        moved = [
            0 if source is None else coords[source] * size // split.out_sizes[source] for source, size in zip(dims, shape, strict=True)
        ]
        columns.append(sum(c << s for c, s in zip(moved, shifts, strict=True)))
    return make_split(shape, tuple(columns))


@lru_cache(maxsize=256)
def dot_split(shape: tuple[int, ...], bits: int, rows_first: bool) -> LinearLayout:
    """Return how the result of a dot is split: batches first, then rows and columns so that a CTA reads as little as it can of the
    operands; rows only, as long as there are enough, with `rows_first`."""
    *batches, rows, columns = shape
    taken = []
    for size in batches:
        take = min(bits, log2_exact(size))
        taken.append(take)
        bits -= take
    options = []
    for along_n in range(bits + 1):
        m, n = rows >> bits - along_n, columns >> along_n
        if m and n:
            small = (m < min(rows, _MIN_ROWS)) + (n < min(columns, _MIN_COLUMNS))
            options.append((small, rows_first and along_n, m + n, along_n))
    along_n = min(options)[-1] if options else 0
    along = [*taken, bits - along_n, along_n]
    images = []
    for dim in reversed(range(len(shape))):
        take = min(along[dim], log2_exact(shape[dim]))
        images += [(shape[dim] >> take) << i << dim_shifts(shape)[dim] for i in range(take)]
    total = sum(along)
    return make_split(shape, tuple(images + [0] * (total - len(images))))


class ClusterSolver(LayoutSolver):
    """The splits of one function over the CTAs of the machine; `homes`, `wants` and `flexible` as in `LayoutSolver`."""

    RULES: ClassVar[dict[str, str]] = {
        **LayoutSolver.RULES,
        "tile.descriptor_gather": "_row_load",
        "tile.descriptor_scatter": "_row_store",
        "tile.descriptor_store": "_block_store",
        "tile.descriptor_reduce": "_block_store",
        "tile.dot_scaled": "_dot",
        "tile.print": "_print",
    }

    @property
    def bits(self) -> int:
        """Bits of the CTA's rank."""
        return log2_exact(self.machine.num_ctas)

    def _plan_accesses(self) -> dict[Node, Access]:
        return {}

    def _default_of(self, shape: tuple[int, ...]) -> LinearLayout:
        return default_split(shape, self.bits)

    def _plan_dot(self, node: Node) -> DotPlan:
        shape = self.tree.shape(node.results[0])
        return DotPlan("split", dot_split(shape, self.bits, rows_stay_together(node, self.tree)))

    def _dot_wants(self, node: Node) -> list[LinearLayout | None]:
        """The splits of the operands of a dot: as the result's, and whole along K."""
        layout = self._dot_layout(node)
        rank = layout.rank
        batches, m, n = tuple(range(rank - 2)), rank - 2, rank - 1
        dims = [(*batches, m, None), (*batches, None, n), (*batches, m, n)]
        if node.name == "tile.dot_scaled":
            present = list(ir.DenseI32ArrayAttr(node.op.attributes["operandSegmentSizes"]))
            every = [dims[0], dims[0], dims[1], (*batches, n, None), dims[2]]
            dims = [d for d, is_there in zip(every, present, strict=True) if is_there]
        return [project(layout, self.tree.shape(v), d) for v, d in zip(node.operands, dims, strict=True)]

    def _dot_layout(self, node: Node) -> LinearLayout:
        if node not in self._dots:
            self._dots[node] = self._plan_dot(node)
        return self._dots[node].layout

    def _collect_wishes(self, block: Block) -> None:
        """Walk backwards and note which splits dots will want of the values that lead to them."""
        wishes, tensors = self._wishes, self.tree.tensors
        for node in reversed(block.nodes):
            for inner in node.blocks:
                self._collect_wishes(inner)
            if node.name in _DOTS:
                for value, wanted in zip(node.operands, self._dot_wants(node), strict=True):
                    wishes.setdefault(value, wanted)
            elif len(node.results) == 1 and node.results[0] in wishes:
                wanted = wishes[node.results[0]]
                for value in node.operands:
                    if value in tensors and (is_elementwise(node.name) or node.name in ("tile.trans", "tile.reshape")):
                        wishes.setdefault(value, operand_layout(node, self.tree.shape(value), wanted))

    # Rules

    def _settle(self, node: Node, layout: LinearLayout) -> None:
        super()._settle(node, layout)
        for value in node.results:
            if value in self.homes:
                self.homes[value] = make_split(self.tree.shape(value), self.homes[value].column("block"))

    def _memory(self, node: Node) -> None:
        pointer = node.operands[0]
        if pointer not in self.tree.tensors:
            return  # an access to one scalar
        like = node.results[0] if node.results else pointer
        self._settle(node, self._choose(node) or self.home_or_default(like))

    def _dot(self, node: Node) -> None:
        self.wants[node] = list(self._dot_wants(node))
        self.homes[node.results[0]] = self._dot_layout(node)

    def _region(self, node: Node) -> None:
        """A reduction or scan across CTAs takes their parts in order, so these must be blocks."""
        layout = self._choose(node) or self.home_or_default(node.operands[0])
        self._settle(node, layout if is_contiguous(layout) else self.default(node.operands[0]))

    def _gather(self, node: Node) -> None:
        """The source is whole along the axis, and otherwise split as the indices are."""
        src, indices = node.operands
        axis, layout = integer(node.op, "axis"), self.home_or_default(indices)
        shape = self.tree.shape(src)
        self.wants[node] = [project(layout, shape, tuple(None if d == axis else d for d in range(len(shape)))), layout]
        self.homes[node.results[0]] = layout

    def _histogram(self, node: Node) -> None:
        self._want(node, self.home_or_default(node.operands[0]))
        self.homes[node.results[0]] = self._whole(node.results[0])

    def _split(self, node: Node) -> None:
        source = node.operands[0]
        shape, layout = self.tree.shape(source), self.home_or_default(source)
        if moves_along(layout, len(shape) - 1):
            layout = default_split(shape, self.bits, (len(shape) - 1,))
        self.wants[node] = [layout]
        for value in node.results:
            if value in self.tree.tensors:
                self.homes[value] = make_split(shape[:-1], tuple(c >> 1 for c in layout.column("block")))

    def _print(self, node: Node) -> None:
        self._want(node, self._whole)

    def _block(self, value: ir.Value) -> LinearLayout:
        """A split of a block of a descriptor into blocks."""
        layout = self.home_or_default(value)
        return layout if is_contiguous(layout) else self.default(value)

    def _block_load(self, node: Node) -> None:
        self.homes[node.results[0]] = self._block(node.results[0])

    def _block_store(self, node: Node) -> None:
        value = node.operands[1]
        self.wants[node] = [self._block(v) if v is value else None for v in node.operands]

    def _row_load(self, node: Node) -> None:
        rows = node.operands[1]
        layout = self.home_or_default(rows)
        self.wants[node] = [None, layout, None]
        self.homes[node.results[0]] = project(layout, self.tree.shape(node.results[0]), (0, None))

    def _row_store(self, node: Node) -> None:
        value, rows = node.operands[1], node.operands[2]
        layout = self.home_or_default(rows)
        self.wants[node] = [None, project(layout, self.tree.shape(value), (0, None)), layout, None]

    def _whole(self, value: ir.Value) -> LinearLayout:
        return make_split(self.tree.shape(value), (0,) * self.bits)
