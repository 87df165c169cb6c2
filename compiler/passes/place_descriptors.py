"""`tilegpu-place-descriptors`: the shared-memory layout of the blocks that each tensor descriptor moves.

Before: descriptors are arguments of the kernel (`tile-host-descriptors`) or made in its scratch memory (`tile-device-descriptors`);
`tilegpu-lower-dots` has run.
After: the type of each descriptor carries a layout that TMA can copy: what a wgmma or another dot reads of it, if that is possible, else
what makes reading and storing it free of bank conflicts. All accesses of a descriptor go through buffers of this layout, since the host
makes one tensor map for it.
"""

from __future__ import annotations

from mlir import ir

from tilewright.compiler.encoding import encode_shared, layout_of, shared_of
from tilewright.compiler.layouts import SharedLayout, shared_conflicts, shared_vector_width
from tilewright.compiler.layouts.descriptors import tma_boxes, tma_layout
from tilewright.dialects import tile

from .building import collect, is_public
from .device_descriptors import SLOT
from .registry import register


@register("tilegpu-place-descriptors")
def place_descriptors(module: ir.Operation) -> None:
    """Run on a module; see the file's docstring."""
    for function in collect(module, "func.func"):
        if not len(function.regions[0].blocks) or not is_public(function):
            continue
        arguments = list(function.regions[0].blocks[0].arguments)
        descriptors = [a for a in arguments if tile.is_desc(a.type) and tile.desc_info(a.type)[2] is None]
        for argument in descriptors:
            shape, element, _ = tile.desc_info(argument.type)
            argument.set_type(tile.desc_type(shape, element, encode_shared(_layout(argument))))
        for op in collect(function, "tile.make_descriptor"):
            if SLOT in op.attributes:
                shape, element, _ = tile.desc_info(op.results[0].type)
                op.results[0].set_type(tile.desc_type(shape, element, encode_shared(_layout(op.results[0]))))
        if descriptors:
            types = [a.type for a in arguments]
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [], function.context))


def _layout(descriptor: ir.Value) -> SharedLayout:
    shape, element, _ = tile.desc_info(descriptor.type)
    shape, bits = tuple(shape), max(8, element.width)
    users = [use.owner.operation for use in descriptor.uses]
    for user in users:
        if user.name == "tile.descriptor_load":
            for use in user.results[0].uses:
                if use.owner.operation.name == "tilegpu.local_alloc":
                    shared = shared_of(use.owner.operation.results[0].type)
                    if shared.shape == shape and tma_boxes(shared, bits) is not None:
                        return shared
    tensors = [user.results[0] if user.name == "tile.descriptor_load" else user.operands[1] for user in users]
    candidates = dict.fromkeys(tma_layout(shape, bits, swizzled) for swizzled in (True, False))
    return min(candidates, key=lambda shared: sum(_cost(v.type, shared, bits) for v in tensors if tuple(v.type.shape) == shape))


def _cost(type_: ir.Type, shared: SharedLayout, bits: int) -> int:
    """Return the cycles, up to a factor, that moving a tensor to or from a buffer takes."""
    layout = layout_of(type_)
    return shared_conflicts(layout, shared, bits) * 16 // shared_vector_width(layout, shared, bits)
