"""`tilegpu-lower-tma`: what is left of loads, stores and reductions of blocks becomes TMA copies.

Before: `tile.descriptor_load`, `tile.descriptor_store` and `tile.descriptor_reduce` on descriptors whose type carries a layout
(`tilegpu-place-descriptors`); `tilegpu-pipeline` has taken the loads that run ahead.
After:
- a load is a buffer with an mbarrier of its own, `tilegpu.tma_load`, and the wait for it;
- a store writes a staging buffer and issues `tilegpu.tma_store` or `tilegpu.tma_reduce` from that. In a loop, where shared memory
  suffices, TMA reads the staging buffer while the loop goes on: the wait stands in front of the next write to it, and one at the end of the
  kernel. Elsewhere it follows the store. Memory that the kernel loads by TMA as well is waited for until it is written.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.encoding import buffer_type
from tilewright.compiler.layouts import LinearLayout, SharedLayout
from tilewright.compiler.lowering.shared_memory import buffer_bytes
from tilewright.dialects import tile, tilegpu

from .building import Builder, collect, defining, i32_attr
from .registry import register

_MBARRIER = SharedLayout(LinearLayout({"offset": []}, (1,)))


@register("tilegpu-lower-tma", only_for=("tile.descriptor_load", "tile.descriptor_store", "tile.descriptor_reduce"))
def lower_tma(module: ir.Operation, *, shared_limit: int = 227 * 1024) -> None:
    """Run on a module; see the file's docstring. `shared_limit` is the shared memory of a CTA in bytes."""
    for op in collect(module, "tile.descriptor_load"):
        _load(op)
    for function in collect(module, "func.func"):
        stores = collect(function, "tile.descriptor_store", "tile.descriptor_reduce")
        if stores:
            _Stores(function, stores, shared_limit).run()


def mbarrier_type(context: ir.Context, slots: int = 0) -> ir.Type:
    """Return the type of an mbarrier, or of a ring of them."""
    return buffer_type(_MBARRIER, ir.IntegerType.get_signless(64, context), slots)


def described_buffer(descriptor: ir.Value, slots: int = 0) -> ir.Type:
    """Return the type of a buffer for the blocks of a descriptor. Raises ValueError for one that the kernel makes itself."""
    shape, element, layout = tile.desc_info(descriptor.type)
    if layout is None:
        raise ValueError("a descriptor that the kernel makes has no layout: run tile-host-descriptors and tile-lower-descriptors first")
    return tilegpu.buffer_type(shape, element, layout, slots)


def block_bytes(descriptor: ir.Value) -> int:
    """Return the bytes that one copy moves, which is what its mbarrier counts: boxes count whole, wherever the array ends."""
    shape, element, _ = tile.desc_info(descriptor.type)
    return prod(shape) * element_bytes(element)


def issue_load(
    build: Builder, load: ir.Operation, operands: list[ir.Value], buffer: ir.Value, mbarrier: ir.Value, predicate: ir.Value | None = None
) -> None:
    """Create the `tilegpu.tma_load` of a `tile.descriptor_load`, with other operands (descriptor and indices)."""
    optional = [] if predicate is None else [predicate]
    segments = [1, len(operands) - 1, 1, 1, len(optional)]
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments, load.context)}
    if "evict" in load.attributes:
        attributes["evict"] = load.attributes["evict"]
    build.op("tilegpu.tma_load", [], [*operands, buffer, mbarrier, *optional], attributes)


def _load(op: ir.Operation) -> None:
    build = Builder.before(op)
    descriptor, context = op.operands[0], op.context
    buffer = build.value("tilegpu.local_alloc", described_buffer(descriptor), [])
    mbarrier = build.value("tilegpu.local_alloc", mbarrier_type(context), [])
    build.op("tilegpu.mbarrier_init", [], [mbarrier], {"count": i32_attr(1, context)})
    build.op("tilegpu.fence_async", [], [])
    build.op("tilegpu.mbarrier_expect", [], [mbarrier], {"bytes": i32_attr(block_bytes(descriptor), context)})
    issue_load(build, op, list(op.operands), buffer, mbarrier)
    build.op("tilegpu.mbarrier_wait", [], [mbarrier, build.i32(0)])
    replace_loaded(op.results[0], buffer, Builder.before(op))
    op.erase()


def replace_loaded(value: ir.Value, buffer: ir.Value, build: Builder) -> None:
    """Let the users of a loaded block read it from its buffer: an allocation of the same layout is that buffer, a conversion of layout
    reads it in the new one, all others read it as it was."""
    for user in [use.owner.operation for use in value.uses]:
        if user.name == "tilegpu.local_alloc" and user.results[0].type == buffer.type:
            user.results[0].replace_all_uses_with(buffer)
            user.erase()
        elif user.name == "tilegpu.convert_layout":
            read = Builder.before(user).value("tilegpu.local_load", user.results[0].type, [buffer])
            user.results[0].replace_all_uses_with(read)
            user.erase()
    if any(True for _ in value.uses):
        value.replace_all_uses_with(build.value("tilegpu.local_load", value.type, [buffer]))


class _Stores:
    """The stores and reductions of one function."""

    def __init__(self, function: ir.Operation, stores: list[ir.Operation], shared_limit: int):
        self.function = function
        self.stores = stores
        self.attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        self.room = shared_limit - sum(buffer_bytes(op.results[0].type) for op in collect(function, "tilegpu.local_alloc"))

    def run(self) -> None:
        """Lower them all."""
        pending = False
        for op in self.stores:
            pending |= self._store(op)
        if pending:
            end = list(self.function.regions[0].blocks[0].operations)[-1].operation
            _wait(Builder.before(end), True)

    def _store(self, op: ir.Operation) -> bool:
        """Lower one; return whether it may be under way when the kernel ends."""
        descriptor, value, *indices = op.operands
        build = Builder.before(op)
        type_ = described_buffer(descriptor)
        recipe = ir.DictAttr(self.attributes[descriptor.arg_number]["tile.descriptor"])
        reads_back = "reads_back" in recipe
        deferred = not reads_back and _in_loop(op) and buffer_bytes(type_) <= self.room
        if deferred:
            self.room -= buffer_bytes(type_)
        buffer = build.value("tilegpu.local_alloc", type_, [])
        if deferred:
            _wait(build, True)
        build.op("tilegpu.local_store", [], [_before_conversion(value), buffer])
        build.op("tilegpu.fence_async", [], [])
        if op.name == "tile.descriptor_store":
            build.op("tilegpu.tma_store", [], [descriptor, *indices, buffer])
        else:
            build.op("tilegpu.tma_reduce", [], [descriptor, *indices, buffer], {"kind": op.attributes["kind"]})
        if not deferred:
            _wait(build, not reads_back)
        op.erase()
        return deferred


def _before_conversion(value: ir.Value) -> ir.Value:
    """Return what a conversion of layout converts, since a buffer takes any layout."""
    op = defining(value)
    return op.operands[0] if op is not None and op.name == "tilegpu.convert_layout" else value


def _in_loop(op: ir.Operation) -> bool:
    parent = op.parent.operation
    while parent.name != "func.func":
        if parent.name in ("scf.for", "scf.while"):
            return True
        parent = parent.parent.operation
    return False


def _wait(build: Builder, read: bool) -> None:
    """Wait for all stores: until they have read their buffers, or until they are written."""
    attributes = {"num": i32_attr(0, build.loc.context)}
    if read:
        attributes["read"] = ir.UnitAttr.get(build.loc.context)
    build.op("tilegpu.tma_store_wait", [], [], attributes)
