"""Expressions but for calls and control flow: constants, names, operators, attributes, subscripts, tuples, strings."""

from __future__ import annotations

import ast
import builtins
import operator
from typing import Any

from tilewright.language import core, iterators
from tilewright.language.functions import is_aggregate

from .calls import call
from .generator import Generator, describe
from .syntax import visits

_BINARY = {
    ast.Add: ("__add__", operator.add),
    ast.Sub: ("__sub__", operator.sub),
    ast.Mult: ("__mul__", operator.mul),
    ast.Div: ("__truediv__", operator.truediv),
    ast.FloorDiv: ("__floordiv__", operator.floordiv),
    ast.Mod: ("__mod__", operator.mod),
    ast.Pow: ("__pow__", operator.pow),
    ast.LShift: ("__lshift__", operator.lshift),
    ast.RShift: ("__rshift__", operator.rshift),
    ast.BitAnd: ("__and__", operator.and_),
    ast.BitOr: ("__or__", operator.or_),
    ast.BitXor: ("__xor__", operator.xor),
}
_COMPARE = {
    ast.Eq: ("__eq__", operator.eq),
    ast.NotEq: ("__ne__", operator.ne),
    ast.Lt: ("__lt__", operator.lt),
    ast.LtE: ("__le__", operator.le),
    ast.Gt: ("__gt__", operator.gt),
    ast.GtE: ("__ge__", operator.ge),
}
_UNARY = {ast.USub: ("__neg__", operator.neg), ast.UAdd: ("__pos__", operator.pos), ast.Invert: ("__invert__", operator.invert)}
# the other operand's method for a comparison
_MIRRORED = {"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__", "__eq__": "__eq__", "__ne__": "__ne__"}
_HINTS = {
    ast.MatMult: "`@` is not supported in a kernel: use tl.dot(a, b)",
    ast.Pow: "`**` is for constants only: multiply, or use tl.exp2(tl.log2(x) * y)",
}


@visits(ast.Constant)
def visit_constant(gen: Generator, node: ast.Constant) -> Any:
    if isinstance(node.value, (complex, bytes)) or node.value is ...:
        raise gen.unsupported(f"{node.value!r} is not supported in a kernel")
    return node.value


@visits(ast.Name)
def visit_name(gen: Generator, node: ast.Name) -> Any:
    return gen.lookup(node.id)


# ---- operators --------------------------------------------------------------------------------------------------------------------


@visits(ast.BinOp)
def visit_binary(gen: Generator, node: ast.BinOp) -> Any:
    return binary(gen, node.op, gen.visit(node.left), gen.visit(node.right))


def binary(gen: Generator, op: ast.operator, left: Any, right: Any) -> Any:
    """`left op right`; Python's result if both are constants."""
    name, function = _BINARY.get(type(op), (None, None))
    if function is None or (type(op) is ast.Pow and (core.flatten(left) or core.flatten(right))):
        raise gen.unsupported(_HINTS[type(op)])
    return _apply(gen, name, "__r" + name[2:], function, left, right)


def _apply(gen: Generator, name: str, reflected: str, function: Any, left: Any, right: Any) -> Any:
    """Apply a binary operator: methods of aggregates may be @jit functions, all else follows Python's protocol."""
    if _is_aggregate(left) and (method := getattr(left, name, None)) is not None:
        return call(gen, method, (right,), {})
    if _is_aggregate(right) and (method := getattr(right, reflected, None)) is not None:
        return call(gen, method, (left,), {})
    return core.unwrap(function(left, right))


def _is_aggregate(value: Any) -> bool:
    return is_aggregate(type(value))


@visits(ast.UnaryOp)
def visit_unary(gen: Generator, node: ast.UnaryOp) -> Any:
    operand = gen.visit(node.operand)
    if type(node.op) is ast.Not:
        if isinstance(operand, core.tensor):
            return operand.__not__()
        return not _static_truth(gen, operand)
    name, function = _UNARY[type(node.op)]
    if _is_aggregate(operand):
        return call(gen, getattr(operand, name), (), {})
    return core.unwrap(function(operand))


def _static_truth(gen: Generator, value: Any) -> bool:
    if isinstance(value, core.base_value):
        raise gen.error(f"{describe(value)} is neither true nor false")
    return bool(value)


@visits(ast.BoolOp)
def visit_boolean(gen: Generator, node: ast.BoolOp) -> Any:
    """`and`, `or`: constants decide at once and the rest is not visited; on tensors both sides are evaluated."""
    is_and = type(node.op) is ast.And
    result = gen.visit(node.values[0])
    for operand in node.values[1:]:
        if not isinstance(result, core.tensor) and _static_truth(gen, result) is not is_and:
            return result
        value = gen.visit(operand)
        result = _both(result, value, is_and) if isinstance(result, core.tensor) else value
    return result


def _both(left: core.tensor, right: Any, is_and: bool) -> Any:
    if not isinstance(right, core.base_value):
        return left if bool(right) is is_and else not is_and
    return left.logical_and(right) if is_and else left.logical_or(right)


@visits(ast.Compare)
def visit_compare(gen: Generator, node: ast.Compare) -> Any:
    left = gen.visit(node.left)
    result: Any = True
    for op, operand in zip(node.ops, node.comparators, strict=True):
        right = gen.visit(operand)
        holds = compare(gen, op, left, right)
        result = holds if result is True else _both(result, holds, True)
        if result is False:
            return False
        left = right
    return result


def compare(gen: Generator, op: ast.cmpop, left: Any, right: Any) -> Any:
    """One comparison. `is`, `in` and comparisons of constants are decided now."""
    kind = type(op)
    if kind in (ast.Is, ast.IsNot):
        return (left is right) is (kind is ast.Is)
    if kind in (ast.In, ast.NotIn):
        if core.flatten(left) or core.flatten(right):
            raise gen.unsupported("`in` is for constants only: compare with `==` and combine with `|`")
        return (left in right) is (kind is ast.In)
    name, function = _COMPARE[kind]
    if isinstance(left, tuple) and isinstance(right, tuple) and (core.flatten(left) or core.flatten(right)):
        return _compare_tuples(gen, kind, left, right)
    if left is None or right is None:  # a value is not None
        return function(left is None, right is None) if kind in (ast.Eq, ast.NotEq) else function(left, right)
    return _apply(gen, name, _MIRRORED[name], function, left, right)


def _compare_tuples(gen: Generator, kind: type, left: tuple, right: tuple) -> Any:
    if kind not in (ast.Eq, ast.NotEq):
        raise gen.unsupported("tuples with tensors compare by `==` and `!=` only")
    result: Any = len(left) == len(right)
    for a, b in zip(left, right):
        if result is False:
            break
        equal = compare(gen, ast.Eq(), a, b)
        result = equal if result is True else _both(result, equal, True)
    if kind is ast.Eq:
        return result
    return result.__not__() if isinstance(result, core.tensor) else not result


@visits(ast.NamedExpr)
def visit_walrus(gen: Generator, node: ast.NamedExpr) -> Any:
    value = gen.as_variable(gen.visit(node.value))
    gen.assign(node.target.id, value)
    return value


# ---- attributes and subscripts ------------------------------------------------------------------------------------------------------


@visits(ast.Attribute)
def visit_attribute(gen: Generator, node: ast.Attribute) -> Any:
    return attribute(gen, gen.visit(node.value), node.attr)


_MISSING = object()


def attribute(gen: Generator, holder: Any, name: str) -> Any:
    """`holder.name`. Numbers have the methods of tensors, so that an argument specialized to a constant can be used like any other."""
    if type(holder) in (bool, int, float) and hasattr(core.tensor, name):
        holder = gen.as_variable(holder)
    found = getattr(holder, name, _MISSING)
    if found is _MISSING:
        if name == "value" and not isinstance(holder, core.base_value):
            return holder  # of a constexpr
        what = f"module {holder.__name__}" if hasattr(holder, "__spec__") else describe(holder)
        raise gen.error(f"{what} has no attribute {name!r}")
    return core.unwrap(found)


@visits(ast.Subscript)
def visit_subscript(gen: Generator, node: ast.Subscript) -> Any:
    holder = gen.visit(node.value)
    index = gen.visit(node.slice)
    if isinstance(holder, core.tensor):
        return holder[index]
    if isinstance(holder, core.base_value):
        return call(gen, getattr(holder, "__getitem__"), (index,), {})  # noqa: B009  (looked up on the value, not on its type)
    if core.flatten(index):
        raise gen.error(f"a {type(holder).__name__} is indexed by constants only, not by {describe(index)}; unroll with tl.static_range")
    if isinstance(index, core.slice):
        index = builtins.slice(index.start, index.stop, index.step)
    try:
        return core.unwrap(holder[index])
    except (IndexError, KeyError) as error:
        raise gen.error(f"index {index!r} of {describe(holder)} is out of range") from error


@visits(ast.Slice)
def visit_slice(gen: Generator, node: ast.Slice) -> Any:
    bounds = [None if part is None else gen.visit(part) for part in (node.lower, node.upper, node.step)]
    if core.flatten(bounds):
        raise gen.error("the bounds of a slice must be constants; a tensor is indexed by `:` and None only")
    return core.slice(*bounds)


# ---- tuples and strings ---------------------------------------------------------------------------------------------------------------


@visits(ast.Tuple, ast.List)
def visit_tuple(gen: Generator, node: ast.Tuple | ast.List) -> core.tuple:
    items: list[Any] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            items.extend(gen.visit(item.value))
        else:
            items.append(gen.visit(item))
    return core.tuple(items)


@visits(ast.ListComp)
def visit_list_comprehension(gen: Generator, node: ast.ListComp) -> core.tuple:
    if len(node.generators) != 1:
        raise gen.unsupported("a list comprehension takes one `for` in a kernel: nest two comprehensions")
    generator = node.generators[0]
    items = []
    outer = gen.frame.scope
    for value in iterate(gen, gen.visit(generator.iter), generator.iter):
        gen.frame.scope = dict(outer)
        unpack(gen, generator.target, value, as_variables=False)
        tests = [gen.truth(test, "a list comprehension") for test in generator.ifs]
        if not all(isinstance(test, bool) for test in tests):
            raise gen.error("the `if` of a list comprehension must be known at compile time", generator.ifs[0])
        if all(tests):
            items.append(gen.visit(node.elt))
        gen.frame.scope = outer
    return core.tuple(items)


def iterate(gen: Generator, iterable: Any, node: ast.AST) -> list[Any]:
    """The items of a tuple, or of a range with constant bounds."""
    if isinstance(iterable, iterators.static_range):
        return list(iterable)
    if isinstance(iterable, iterators.range) and not core.flatten((iterable.start, iterable.end, iterable.step)):
        return list(builtins.range(iterable.start, iterable.end, iterable.step))
    if isinstance(iterable, tuple):
        return list(iterable)
    raise gen.unsupported(f"a tuple, or a range with constant bounds, is needed here, not {describe(iterable)}", node)


def unpack(gen: Generator, target: ast.AST, value: Any, as_variables: bool = True) -> None:
    """Assign `value` to a name or a nest of names. With `as_variables` numbers become scalar tensors."""
    if isinstance(target, ast.Name):
        gen.assign(target.id, gen.as_variable(value) if as_variables else value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack_tuple(gen, target, value, as_variables)
    elif isinstance(target, ast.Attribute):
        raise gen.unsupported("Attribute assignment is not supported in triton: use aggregate_replace() for a changed copy", target)
    elif isinstance(target, ast.Subscript):
        raise gen.unsupported(
            "__setitem__ is not supported in triton: use tl.where with an index mask for a tensor, tl.store for memory", target
        )
    else:
        raise gen.unsupported(f"{type(target).__name__} is not supported as the target of an assignment", target)


def _unpack_tuple(gen: Generator, target: ast.Tuple | ast.List, value: Any, as_variables: bool) -> None:
    if any(isinstance(item, ast.Starred) for item in target.elts):
        raise gen.unsupported("a starred target is not supported in a kernel: index or slice the tuple", target)
    if not isinstance(value, (tuple, list)):
        raise gen.error(f"cannot unpack {describe(value)}: a tuple is needed", target)
    if len(value) != len(target.elts):
        raise gen.error(f"cannot unpack {len(value)} values into {len(target.elts)} names", target)
    for item, part in zip(target.elts, value, strict=True):
        unpack(gen, item, part, as_variables)


@visits(ast.JoinedStr)
def visit_joined_string(gen: Generator, node: ast.JoinedStr) -> str:
    return "".join(gen.visit(part) for part in node.values)


_CONVERSIONS = {-1: lambda v: v, ord("s"): str, ord("r"): repr, ord("a"): ascii}


@visits(ast.FormattedValue)
def visit_formatted_value(gen: Generator, node: ast.FormattedValue) -> str:
    value = gen.visit(node.value)
    if core.flatten(value):
        raise gen.unsupported(f"an f-string takes constants only, not {describe(value)}: use tl.device_print for values of the run")
    spec = gen.visit(node.format_spec) if node.format_spec is not None else ""
    return format(_CONVERSIONS[node.conversion](value), spec)
