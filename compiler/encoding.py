"""Layouts of the algebra to and from the attributes of the `tilegpu` dialect, cached both ways.

MLIR attributes and types are uniqued and live as long as the process-wide context, so caches keyed by them never go stale.
"""

from __future__ import annotations

from functools import cache

from mlir import ir

from tilewright.compiler.layouts import INPUTS, LinearLayout, SharedLayout
from tilewright.dialects import tilegpu


@cache
def encode(layout: LinearLayout) -> ir.Attribute:
    """Return the `#tilegpu.linear` attribute of a distributed layout."""
    return tilegpu.linear_attr(layout.bases, layout.rank)


@cache
def encode_shared(shared: SharedLayout) -> ir.Attribute:
    """Return the `#tilegpu.shared` attribute of a shared layout."""
    return tilegpu.shared_attr(shared.linear.bases["offset"], shared.padding, shared.linear.rank)


@cache
def layout_of(tensor_type: ir.Type) -> LinearLayout:
    """Return the layout of a tensor type. Raises ValueError if the type carries none."""
    encoding = tensor_type.encoding
    if encoding is None:
        raise ValueError(f"{tensor_type} has no layout")
    bases = tilegpu.linear_bases(encoding)
    return LinearLayout({name: bases[name] for name in INPUTS}, tuple(tensor_type.shape))


@cache
def shared_of(buffer_type: ir.Type) -> SharedLayout:
    """Return the shared layout of a buffer type; the slots of a buffer that has several are alike."""
    shape, _, attribute, _ = tilegpu.buffer_info(buffer_type)
    return SharedLayout(LinearLayout(tilegpu.shared_bases(attribute), tuple(shape)), tilegpu.shared_pad(attribute))


@cache
def with_layout(tensor_type: ir.Type, layout: LinearLayout) -> ir.Type:
    """Return the tensor type with its layout set or replaced."""
    location = ir.Location.unknown(tensor_type.context)
    return ir.RankedTensorType.get(tensor_type.shape, tensor_type.element_type, encode(layout), location)


@cache
def buffer_type(shared: SharedLayout, element: ir.Type, slots: int = 0) -> ir.Type:
    """Return the buffer type with a shared layout; `slots` is the number of buffers behind each other, 0 for a plain one."""
    return tilegpu.buffer_type(shared.shape, element, encode_shared(shared), slots)
