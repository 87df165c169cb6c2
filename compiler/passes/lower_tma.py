"""`tilegpu-lower-tma`: what is left of loads of blocks becomes TMA copies.

Before: `tile.descriptor_load` on descriptors whose type carries a layout (`tilegpu-place-descriptors`); `tilegpu-pipeline` has taken the
loads that run ahead.
After: a load is a buffer with an mbarrier of its own, `tilegpu.tma_load`, and the wait for it.

The helpers that make the operations of a TMA load are shared with the passes that let loads run ahead.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.encoding import buffer_type
from tilewright.compiler.layouts import LinearLayout, SharedLayout
from tilewright.dialects import tile, tilegpu

from .building import Builder, collect, i32_attr
from .registry import register

_MBARRIER = SharedLayout(LinearLayout({"offset": []}, (1,)))


@register("tilegpu-lower-tma", only_for=("tile.descriptor_load",))
def lower_tma(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for op in collect(module, "tile.descriptor_load"):
        _load(op)


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
    build: Builder,
    load: ir.Operation,
    operands: list[ir.Value],
    buffer: ir.Value,
    mbarrier: ir.Value,
    predicate: ir.Value | None = None,
    multicast: int = 0,
) -> None:
    """Create the `tilegpu.tma_load` of a `tile.descriptor_load`, with other operands (descriptor and indices). `multicast`: the bits of the
    rank whose CTAs load the same block, each a piece of it for all of them."""
    optional = [] if predicate is None else [predicate]
    segments = [1, len(operands) - 1, 1, 1, len(optional)]
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments, load.context)}
    if "evict" in load.attributes:
        attributes["evict"] = load.attributes["evict"]
    if multicast:
        attributes |= {"multicast": ir.UnitAttr.get(load.context), "tilegpu.ctas": i32_attr(multicast, load.context)}
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
