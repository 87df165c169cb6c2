"""Tensor descriptors as arguments of a kernel, made by the host: how passes add them."""

from __future__ import annotations

from collections.abc import Mapping

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes

# The element type that TMA is told, unless an access asks for another. It moves bits; only reductions and NaN padding interpret them.
FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64"}


def told_element(element: ir.Type) -> str:
    """Return the element type that TMA is told for loads and stores."""
    return FLOATS.get(str(element), f"u{8 * element_bytes(element)}")


def add_descriptor(function: ir.Operation, type_: ir.Type, recipe: Mapping[str, ir.Attribute], loc: ir.Location) -> ir.Value:
    """Give a kernel one more argument, of the descriptor type `type_`, with the attribute `tile.descriptor`, and return it.

    The recipe says how the host makes it, by expressions over the other arguments (`host_expression`): `base` (address), `shape` and
    `strides` (elements; without the last, which is 1), `padding`, `element`, `argument` (the number of the one that the base comes from);
    `stores` if not only loads use it, `reads_back` if the kernel also loads what it stores there, and `conditions`, without which
    the kernel must not be launched.
    """
    context = function.context
    block = function.regions[0].blocks[0]
    argument = block.add_argument(type_, loc)
    types = [a.type for a in block.arguments]
    attributes = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    attributes += [ir.DictAttr.get({}, context)] * (len(types) - 1 - len(attributes))
    attributes.append(ir.DictAttr.get({"tile.descriptor": ir.DictAttr.get(dict(recipe), context)}, context))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes, context)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [], context))
    return argument
