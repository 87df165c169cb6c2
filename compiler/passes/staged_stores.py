"""`tilegpu-stage-stores`: stores and reductions of blocks by TMA, through staging buffers in shared memory.

Before: `tile.descriptor_store` and `tile.descriptor_reduce` on descriptors whose type carries a layout (`tilegpu-place-descriptors`).
After, for each piece of the block (`analysis.staging`):

    tma_store_wait            until the slot's last store has read it
    local_store               of the piece into the slot
    fence_async
    tma_store or tma_reduce   from the slot

In a loop or a role, where shared memory suffices, TMA reads the slots while that goes on: a wait leaves the other slots' stores in
flight, and the last ones are waited for at the end of the kernel. Elsewhere the wait follows the store. Memory that the kernel loads by TMA
as well is waited for until it is written.

Where warps store by themselves, the accesses have the attribute `tilegpu.each_warp`, the rows of a box, and the descriptor's recipe has
`rows`; see `analysis.staging`. A descriptor that is cut into pieces has the type of one.
"""

from __future__ import annotations

from dataclasses import replace

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.staging import Staging, stagings
from tilewright.compiler.encoding import encode_shared, layout_of, shared_of, with_layout
from tilewright.compiler.layouts import without_conflicts
from tilewright.compiler.layouts.descriptors import tma_boxes, tma_layout
from tilewright.compiler.lowering.shared_memory import buffer_bytes
from tilewright.dialects import tile, tilegpu

from .building import Builder, collect, defining, i32_attr
from .columns import cut
from .lower_tma import described_buffer
from .registry import register
from .rings import buffer_slot

EACH_WARP = "tilegpu.each_warp"
#: Elements of as many bits are stored plainly.
_PLAIN_BITS = 32
_STORES = ("tile.descriptor_store", "tile.descriptor_reduce")


@register("tilegpu-stage-stores", only_for=_STORES)
def stage_stores(module: ir.Operation, *, shared_limit: int = 227 * 1024) -> None:
    """Run on a module; see the file's docstring. `shared_limit` is the shared memory of a CTA in bytes."""
    for function in collect(module, "func.func"):
        ops = collect(function, *_STORES)
        if ops:
            _Stores(function, ops, shared_limit).run()


class _Stores:
    """The stores and reductions of one function."""

    def __init__(self, function: ir.Operation, ops: list[ir.Operation], shared_limit: int):
        self.function = function
        self.ops = ops
        self.attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        self.room = shared_limit - sum(buffer_bytes(op.results[0].type) for op in collect(function, "tilegpu.local_alloc"))

    def run(self) -> None:
        """Lower them all."""
        by_descriptor: dict[ir.Value, list[ir.Operation]] = {}
        for op in self.ops:
            by_descriptor.setdefault(op.operands[0], []).append(op)
        pending = False
        for descriptor, ops in by_descriptor.items():
            pending |= self._lower(descriptor, ops)
        if pending:
            end = list(self.function.regions[0].blocks[0].operations)[-1].operation
            _wait(Builder.before(end), 0, True)

    def _lower(self, descriptor: ir.Value, ops: list[ir.Operation]) -> bool:
        """Lower the stores through one descriptor; return whether one may be under way when the kernel ends."""
        recipe = ir.DictAttr(self.attributes[descriptor.arg_number]["tile.descriptor"])
        reads_back = "reads_back" in recipe
        may_defer = not reads_back and all(map(_goes_on, ops))
        plans = self._plans(descriptor, ops)
        fitting = [plan for plan in plans if may_defer and plan.bytes * len(ops) <= self.room]
        plan = fitting[0] if fitting else plans[0]
        if fitting:
            self.room -= plan.bytes * len(ops)
        if plan.pieces > 1:
            self._cut(descriptor, plan)
        if plan.rows:
            self._announce_rows(descriptor, plan.rows)
        for op in ops:
            self._store(op, plan, bool(fitting), not reads_back)
        return bool(fitting)

    def _plans(self, descriptor: ir.Value, ops: list[ir.Operation]) -> list[Staging]:
        """Return how the stores through a descriptor can be staged, the simplest first: all in one way, since it has one box."""
        shape, element, layout = tile.desc_info(descriptor.type)
        type_ = tilegpu.buffer_type(shape, element, layout)
        whole = Staging(1, tuple(shape), 1, buffer_bytes(type_), 0, 0)
        values = {_before_conversion(op.operands[1]).type for op in ops}
        if len(values) != 1 or sum(1 for _ in descriptor.uses) != len(ops):
            return [whole]
        bits = 8 * element_bytes(element)
        first, *pieces = stagings(values.pop(), bits)
        if first.shape != whole.shape:
            return [whole]
        boxes = tma_boxes(shared_of(type_), bits, first.rows) if first.rows else None
        if boxes is not None and boxes.box[-1] <= first.columns:
            return [replace(whole, rows=first.rows, columns=first.columns), *pieces]
        return [whole, *(replace(plan, rows=0, columns=0) for plan in pieces)]

    def _cut(self, descriptor: ir.Value, plan: Staging) -> None:
        """Let a descriptor describe pieces."""
        _, element, _ = tile.desc_info(descriptor.type)
        shared = tma_layout(plan.shape, 8 * element_bytes(element), True)
        descriptor.set_type(tile.desc_type(plan.shape, element, encode_shared(shared)))
        types = [a.type for a in self.function.regions[0].blocks[0].arguments]
        self.function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [], self.function.context))

    def _announce_rows(self, descriptor: ir.Value, rows: int) -> None:
        """Note the rows of a descriptor's boxes where the host finds them."""
        of_argument = self.attributes[descriptor.arg_number]
        recipe = {**_entries(of_argument["tile.descriptor"]), "rows": i32_attr(rows, self.function.context)}
        entries = {**_entries(of_argument), "tile.descriptor": ir.DictAttr.get(recipe, self.function.context)}
        self.attributes[descriptor.arg_number] = ir.DictAttr.get(entries, self.function.context)
        self.function.attributes["arg_attrs"] = ir.ArrayAttr.get(self.attributes, self.function.context)

    def _store(self, op: ir.Operation, plan: Staging, deferred: bool, read: bool) -> None:
        """Lower one; if not `deferred`, wait until its buffer is read, or with `read` False until it is written."""
        descriptor, value, *indices = op.operands
        build = Builder.before(op)
        own = {EACH_WARP: i32_attr(plan.rows, op.context)} if plan.rows else {}
        kind = {"kind": op.attributes["kind"]} if op.name == "tile.descriptor_reduce" else {}
        store = "tilegpu.tma_reduce" if kind else "tilegpu.tma_store"
        pieces = cut(build, _before_conversion(value), plan.pieces)
        ring = build.value("tilegpu.local_alloc", described_buffer(descriptor, plan.slots if plan.slots > 1 else 0), [])
        for number, piece in enumerate(pieces):
            slot = buffer_slot(build, ring, build.i32(number % plan.slots)) if plan.slots > 1 else ring
            if deferred:
                _wait(build, plan.slots - 1, True)
            build.op("tilegpu.local_store", [], [_spread(build, piece, slot), slot], own)
            build.op("tilegpu.fence_async", [], [])
            start = number * plan.shape[-1]
            last = build.binary("arith.addi", indices[-1], build.i32(start)) if start else indices[-1]
            build.op(store, [], [descriptor, *indices[:-1], last, slot], {**kind, **own})
        if not deferred:
            _wait(build, 0, read)
        op.erase()


def _spread(build: Builder, value: ir.Value, buffer: ir.Value) -> ir.Value:
    """Return a value as threads should hold it to write it to a buffer without bank conflicts. Narrow elements are written by stmatrix."""
    bits = 8 * element_bytes(value.type.element_type)
    layout = layout_of(value.type)
    spread = without_conflicts(layout, shared_of(buffer.type), bits) if bits >= _PLAIN_BITS else layout
    return value if spread == layout else build.value("tilegpu.convert_layout", with_layout(value.type, spread), [value])


def _entries(attributes: ir.Attribute) -> dict[str, ir.Attribute]:
    return {entry.name: entry.attr for entry in ir.DictAttr(attributes)}


def _before_conversion(value: ir.Value) -> ir.Value:
    """Return what a conversion of layout converts, since a buffer takes any layout."""
    op = defining(value)
    return op.operands[0] if op is not None and op.name == "tilegpu.convert_layout" else value


def _goes_on(op: ir.Operation) -> bool:
    """Whether a store may be under way beside other work: in a loop, or in roles, whose buffers are not free for it anyway."""
    parent = op.parent.operation
    while parent.name != "func.func":
        if parent.name in ("scf.for", "scf.while", "tilegpu.warp_specialize"):
            return True
        parent = parent.parent.operation
    return False


def _wait(build: Builder, number: int, read: bool) -> None:
    """Wait for all stores but the last `number`: until they have read their buffers, or until they are written."""
    attributes = {"num": i32_attr(number, build.loc.context)}
    if read:
        attributes["read"] = ir.UnitAttr.get(build.loc.context)
    build.op("tilegpu.tma_store_wait", [], [], attributes)
