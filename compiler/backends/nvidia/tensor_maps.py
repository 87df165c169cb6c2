"""What the launcher must know of the parameters that a kernel takes behind its own: scratch memory, tensor maps, sizes of the grid."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilewright.compiler.encoding import shared_of
from tilewright.compiler.layouts.descriptors import MAX_BOX, tma_boxes
from tilewright.compiler.passes.loop_programs import ALIKE, GRID
from tilewright.compiler.passes.program_queue import QUEUE
from tilewright.dialects import context, tile, tilegpu
from tilewright.errors import CompilationError

#: Blocks with rows of that many bytes use all that L2 fetches, in the order of memory, so that it need not fetch neighbours ahead. On the
#: H200, 134 MB in blocks of 64 rows of 512 bytes came at 3660 GB/s with a promotion to 256 bytes, at 3788 with 128; 128x256x64 products
#: out of memory, whose rows are of 128 bytes, lost 1 to 2% with the latter.
_LONG_ROW = 512
#: Alignment of the memory that `scratch_bytes` speaks of.
SCRATCH_ALIGNMENT = 128


def descriptors(module: ir.Operation) -> list[dict[str, Any]]:
    """An entry for each descriptor parameter of the kernel, in order, of plain data: `base`, `shape` and `strides` as expressions over the
    parameters (see `add_descriptor`), `element`, `padding`, whether the kernel `stores` through it, `conditions` that the parameters must
    meet, the `box` and `swizzle` (bytes) of a copy, and `promotion`, the bytes that L2 fetches at once.

    Holds once descriptors have layouts (`tilegpu-place-descriptors`).
    """
    out = []
    with context():
        for op in module.regions[0].blocks[0].operations:
            op = op.operation
            if op.name != "func.func" or "arg_attrs" not in op.attributes:
                continue
            types = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs
            for type_, attributes in zip(types, ir.ArrayAttr(op.attributes["arg_attrs"]), strict=True):
                if tile.is_desc(type_) and "tile.descriptor" in attributes:
                    out.append(_entry(type_, attributes["tile.descriptor"]))
    return out


def grid_axes(module: ir.Operation) -> list[int]:
    """The axes of the grid that was asked for, in the order in which the kernel takes their sizes, as its last parameters. If there are
    any, its CTAs loop over the programs, and as many are launched as run at a time."""
    with context():
        return [
            ir.IntegerAttr(attributes[GRID]).value
            for op in module.regions[0].blocks[0].operations
            for attributes in (ir.ArrayAttr(op.operation.attributes["arg_attrs"]) if "arg_attrs" in op.operation.attributes else ())
            if GRID in attributes
        ]


def takes_queue(module: ir.Operation) -> bool:
    """Whether the kernel's last parameter, behind the sizes of the grid, is the address of the counter of a queue of programs, or null."""
    return _has_parameter(module, QUEUE)


def has_like_programs(module: ir.Operation) -> bool:
    """Whether all programs of a kernel that loops over them take equally long."""
    return _has_parameter(module, ALIKE)


def _has_parameter(module: ir.Operation, attribute: str) -> bool:
    """Whether a parameter has an attribute of this name."""
    with context():
        return any(
            attribute in attributes
            for op in module.regions[0].blocks[0].operations
            for attributes in (ir.ArrayAttr(op.operation.attributes["arg_attrs"]) if "arg_attrs" in op.operation.attributes else ())
        )


def scratch_bytes(module: ir.Operation) -> int:
    """The bytes of global memory for each CTA in which the kernel makes tensor maps: behind its other parameters it takes a pointer to that
    of the first CTA, if it is not 0."""
    with context():
        for op in module.regions[0].blocks[0].operations:
            for attributes in ir.ArrayAttr(op.operation.attributes["arg_attrs"]) if "arg_attrs" in op.operation.attributes else ():
                if "tile.scratch" in attributes:
                    return ir.IntegerAttr(attributes["tile.scratch"]).value
    return 0


def _entry(type_: ir.Type, recipe: ir.DictAttr) -> dict[str, Any]:
    shape, element, layout = tile.desc_info(type_)
    rows = ir.IntegerAttr(recipe["rows"]).value if "rows" in recipe else MAX_BOX
    boxes = tma_boxes(shared_of(tilegpu.buffer_type(shape, element, layout)), max(8, element.width), rows)
    texts = {name: ir.StringAttr(recipe[name]).value for name in ("base", "element", "padding")}
    lists = {
        name: [ir.StringAttr(text).value for text in recipe[name]] if name in recipe else [] for name in ("shape", "strides", "conditions")
    }
    if boxes is None:
        raise CompilationError(
            None, None, f"TMA cannot copy a block of {type_}: rows of up to 128 bytes, swizzled by 16 bytes, are what it fills"
        )
    promotion = 128 if shape[-1] * max(8, element.width) // 8 >= _LONG_ROW else 256
    box = {"box": list(boxes.box), "swizzle": boxes.swizzle, "promotion": promotion}
    return {**texts, **lists, "stores": "stores" in recipe, **box}
