"""Arguments that passes add to a kernel: tensor descriptors, which the host makes, and others."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from mlir import ir

from tilewright.compiler.analysis.axis_info import element_bytes
from tilewright.compiler.analysis.host_values import FUNCTIONS
from tilewright.compiler.layouts.descriptors import tma_layout
from tilewright.dialects import tile

# The element type that TMA is told, unless an access asks for another. It moves bits; only reductions and NaN padding interpret them.
FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64"}

#: All that it can be told.
ELEMENTS = (*FLOATS.values(), "tf32", "i32", "i64", "u8", "u16", "u32", "u64")


def told_element(element: ir.Type) -> str:
    """Return the element type that TMA is told for loads and stores."""
    return FLOATS.get(str(element), f"u{8 * element_bytes(element)}")


def check_descriptors(module: ir.Operation) -> None:
    """Check the attributes `tile.descriptor` of a module that was read from a file; raises ValueError that says which argument's is wrong.
    Those that passes make need no check."""
    for op in module.regions[0].blocks[0].operations:
        function = op.operation
        if function.name != "func.func" or "arg_attrs" not in function.attributes:
            continue
        types = list(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
        for number, attributes in enumerate(ir.ArrayAttr(function.attributes["arg_attrs"])):
            if "tile.descriptor" in attributes and (wrong := _mistake(attributes["tile.descriptor"], types, number)):
                raise ValueError(f"argument {number}: tile.descriptor {wrong}")


def _mistake(recipe: ir.Attribute, types: list[ir.Type], number: int) -> str | None:
    """What is wrong with a recipe for the argument of this number, if anything."""
    if not isinstance(recipe, ir.DictAttr):
        return "is no dictionary"
    if not tile.is_desc(types[number]):
        return f"is for tensor descriptors, not for {types[number]}"
    shape, block_element, _ = tile.desc_info(types[number])
    if tma_layout(tuple(shape), max(8, block_element.width), True) is None:
        return f"is for blocks that TMA can copy, not for {types[number]}"
    base = recipe["argument"] if "argument" in recipe else None
    if not isinstance(base, ir.IntegerAttr) or not 0 <= base.value < len(types) or not tile.is_ptr(types[base.value]):
        return "must give the number of a pointer argument as `argument`"
    for name, accepted in (("element", ELEMENTS), ("padding", ("zero", "nan"))):
        value = recipe[name].value if name in recipe and isinstance(recipe[name], ir.StringAttr) else None
        if value not in accepted:
            return f"must give `{name}`, one of {', '.join(accepted)}, not {value}"
    rank = len(shape)
    texts = [recipe["base"]] if "base" in recipe else [None]
    for name, count in (("shape", rank), ("strides", rank - 1), ("conditions", None)):
        items = list(recipe[name]) if name in recipe and isinstance(recipe[name], ir.ArrayAttr) else []
        if count is not None and len(items) != count:
            return f"must give {count} expressions as `{name}`, not {len(items)}"
        texts += items
    known = {f"a{i}" for i, type_ in enumerate(types) if not tile.is_desc(type_)} | set(FUNCTIONS)
    for text in texts:
        if not isinstance(text, ir.StringAttr) or not _is_expression(text.value, known):
            return f"must give expressions over the arguments before the descriptors (a0, a1, ...), not {text}"
    return None


def _is_expression(text: str, known: set[str]) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    accepted = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Call, ast.IfExp, ast.Name, ast.Load, ast.operator)
    accepted += (ast.unaryop, ast.cmpop, ast.boolop, ast.Constant)
    return all(isinstance(node, accepted) and (not isinstance(node, ast.Name) or node.id in known) for node in ast.walk(tree))


def add_argument(function: ir.Operation, type_: ir.Type, attributes: Mapping[str, ir.Attribute], loc: ir.Location) -> ir.Value:
    """Give a kernel one more argument, with these attributes, and return it."""
    context = function.context
    block = function.regions[0].blocks[0]
    argument = block.add_argument(type_, loc)
    types = [a.type for a in block.arguments]
    of_arguments = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    of_arguments += [ir.DictAttr.get({}, context)] * (len(types) - 1 - len(of_arguments))
    of_arguments.append(ir.DictAttr.get(dict(attributes), context))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(of_arguments, context)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [], context))
    return argument


def add_descriptor(function: ir.Operation, type_: ir.Type, recipe: Mapping[str, ir.Attribute], loc: ir.Location) -> ir.Value:
    """Give a kernel one more argument, of the descriptor type `type_`, with the attribute `tile.descriptor`, and return it.

    The recipe says how the host makes it, by expressions over the other arguments (`host_expression`): `base` (address), `shape` and
    `strides` (elements; without the last, which is 1), `padding`, `element`, `argument` (the number of the one that the base comes from);
    `stores` if not only loads use it, `reads_back` if the kernel also loads what it stores there, and `conditions`, without which
    the kernel must not be launched.
    """
    return add_argument(function, type_, {"tile.descriptor": ir.DictAttr.get(dict(recipe), function.context)}, loc)
