"""Calls of @jit functions: arguments bound to parameters, bodies visited in place, and `return` anywhere outside loops.

An `if` with a `return` in it takes the rest of the function into its branches: each path ends in a value, and `scf.if` joins them.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

from mlir import ir

from tilewright.language import core
from tilewright.language.semantic.memory import read_only
from tilewright.language.semantic.session import Semantic

from .control_flow import branch, handles_of, with_handles
from .function import KernelFunction
from .generator import Frame, Generator, describe, kernel_function
from .syntax import contains_return

# calls inside calls; a recursion that does not end on a constexpr would go on forever
MAX_CALL_DEPTH = 128


class KernelSemantic(Semantic):
    """The language's session while a kernel is compiled."""

    def __init__(self, generator: Generator, options: Any, target: Any):
        super().__init__(generator.builder, options, target)
        self.generator = generator

    def call_jit(self, fn: Any, args: tuple, kwargs: dict) -> Any:
        return call_function(self.generator, fn, args, kwargs)

    def warn(self, message: str) -> None:
        function, node = self.generator.frame.function, self.generator.node
        line = function.def_line + getattr(node, "lineno", 1) - 1
        warnings.warn_explicit(message, UserWarning, function.file_name, line)


# ---- bodies ---------------------------------------------------------------------------------------------------------------------


def run(gen: Generator, statements: list[ast.stmt], rest: tuple | None = None) -> Any:
    """Visit statements and then `rest`, what follows them in the function: (statements, rest) or None. Returns the function's result.

    The rest after an `if` with a `return` is visited once per branch that falls through."""
    for index, statement in enumerate(statements):
        if isinstance(statement, ast.Return):
            previous, gen.node = gen.node, statement
            value = None if statement.value is None else gen.visit(statement.value)
            gen.node = previous
            return value
        if isinstance(statement, ast.If) and contains_return(statement):
            return _run_branches(gen, statement, (statements[index + 1 :], rest))
        gen.visit(statement)
    return run(gen, *rest) if rest is not None else None


def _run_branches(gen: Generator, node: ast.If, rest: tuple) -> Any:
    previous, gen.node = gen.node, node
    condition = gen.truth(node.test, "`if`")
    if isinstance(condition, bool):
        value = run(gen, node.body if condition else node.orelse, rest)
    else:
        bodies = (lambda: run(gen, node.body, rest), lambda: run(gen, node.orelse, rest))
        value = branch(gen, condition, bodies, "the returned value", keep_names=False)
    gen.node = previous
    return value


def run_body(gen: Generator, frame: Frame) -> Any:
    """Visit the body of `frame.function` at the insertion point; returns what it returns."""
    caller, node = gen.frame, gen.node
    tree = frame.function.ast()
    gen.enter(frame, tree)
    value = run(gen, tree.body)
    gen.enter(caller, node)
    return value


# ---- calls ----------------------------------------------------------------------------------------------------------------------


def call_function(gen: Generator, fn: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a @jit function: its body is visited in place, or, if it is `noinline`, becomes a function of the module."""
    fn = kernel_function(fn)
    scope = bind(gen, fn, args, kwargs)
    if gen.frame.depth >= MAX_CALL_DEPTH:
        raise gen.error(f"calls are nested more than {MAX_CALL_DEPTH} deep: a recursion must end on a constexpr condition")
    if fn.noinline:
        return call_outlined(gen, fn, scope)
    return run_body(gen, Frame(fn, scope, gen.frame, gen.node, gen.locate()))


def bind(gen: Generator, fn: KernelFunction, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The parameters of `fn` with their values, as Python would bind them."""
    scope: dict[str, Any] = {}
    name = fn.__name__
    remaining = list(args)
    for param in fn.params:
        if param.is_varargs:
            scope[param.name] = core.tuple(core.unwrap(v) for v in remaining)
            remaining.clear()
        elif remaining and not param.is_keyword_only:
            if param.name in kwargs:
                raise gen.error(f"{name}() got multiple values for argument '{param.name}'")
            scope[param.name] = core.unwrap(remaining.pop(0))
        elif param.name in kwargs:
            scope[param.name] = core.unwrap(kwargs[param.name])
        elif param.has_default:
            scope[param.name] = core.unwrap(param.default)
        else:
            raise gen.error(f"{name}() missing argument '{param.name}'; it takes ({', '.join(fn.arg_names)})")
        if param.is_constexpr and core.flatten(scope[param.name]):
            raise gen.error(
                f"argument {param.name} of {name}() is annotated tl.constexpr, but gets {describe(scope[param.name])}, "
                "which is known only at run time"
            )
        if param.is_const:
            scope[param.name] = read_only(scope[param.name])
    if remaining:
        raise gen.error(f"{name}() takes {len(fn.params)} arguments but {len(args)} were given")
    for key in kwargs:
        if key not in scope:
            raise gen.error(f"{name}() got an unexpected argument '{key}'; it takes ({', '.join(fn.arg_names)})")
    return scope


def call_outlined(gen: Generator, fn: KernelFunction, scope: dict[str, Any]) -> Any:
    """Call a `noinline` function: one function of the module per combination of argument types and constants."""
    for name, value in scope.items():
        for leaf in core.flatten(value):
            if leaf.type.is_block() or not isinstance(leaf, core.tensor):
                raise gen.unsupported(
                    f"Function {fn.__name__} is marked noinline, but was called with non-scalar argument {name} of type {leaf.type}: "
                    "only scalars and pointers can be passed; remove noinline"
                )
    key = (id(fn), *(core.type_of(value) for value in scope.values()))
    entry = gen.outlined.get(key)
    if entry is _IN_PROGRESS:
        raise gen.error(f"{fn.__name__} is marked noinline and calls itself: a recursion must end on a constexpr condition")
    if entry is None:
        gen.outlined[key] = _IN_PROGRESS
        entry = gen.outlined[key] = _outline(gen, fn, scope, f"{fn.__name__}__{len(gen.outlined)}")
    symbol, template, result_types = entry
    operands = [h for value in scope.values() for h in handles_of(value)]
    op = gen.builder.op("func.call", result_types, operands, {"callee": ir.FlatSymbolRefAttr.get(symbol, gen.context)})
    return with_handles(template, list(op.results))


_IN_PROGRESS = object()


def _outline(gen: Generator, fn: KernelFunction, scope: dict[str, Any], symbol: str) -> tuple[str, Any, list[ir.Type]]:
    """Emit `fn` as a private function. Returns (symbol, a template of its result, the result's types)."""
    types = [h.type for value in scope.values() for h in handles_of(value)]
    frame = Frame(fn, {}, gen.frame, gen.node, None)
    attributes = {"sym_visibility": ir.StringAttr.get("private", gen.context), "no_inline": gen.builder.types.unit}
    caller, node = gen.frame, gen.node
    gen.enter(frame, fn.ast())
    op = declare(gen, symbol, types, attributes)
    entry = op.regions[0].blocks.append(*types, arg_locs=[gen.locate()] * len(types))
    saved = gen.builder.enter_function(entry)
    arguments, place = list(entry.arguments), 0
    for name, value in scope.items():
        count = len(core.flatten(value))
        frame.scope[name] = with_handles(value, arguments[place : place + count]) if count else value
        place += count
    result = run(gen, fn.ast().body)
    result = gen.as_variable(result) if result is not None else None
    handles = handles_of(result)
    gen.builder.op("func.return", [], handles)
    gen.builder.leave_function(saved)
    gen.enter(caller, node)
    result_types = [h.type for h in handles]
    op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, result_types, context=gen.context))
    return symbol, result, result_types


def declare(gen: Generator, symbol: str, types: list[ir.Type], attributes: dict[str, ir.Attribute]) -> ir.Operation:
    """Append a func.func without a body, with arguments of `types` and no results, to the module."""
    attributes = {
        "sym_name": ir.StringAttr.get(symbol, gen.context),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [], context=gen.context)),
        **attributes,
    }
    return ir.Operation.create("func.func", [], [], attributes, None, 1, gen.locate(), ir.InsertionPoint(gen.module.body))
