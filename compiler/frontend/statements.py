"""Statements but for control flow: expressions, assignments, `assert`, `with`, and what a kernel must not contain."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.language import core
from tilewright.language.semantic.debug import device_assert

from .calls import call, visit_call
from .expressions import binary, unpack
from .generator import Generator, describe
from .syntax import contains_return, visits


@visits(ast.Pass)
def visit_pass(gen: Generator, node: ast.Pass) -> None:
    pass


@visits(ast.Expr)
def visit_expression_statement(gen: Generator, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return  # a docstring
    if isinstance(node.value, ast.Call):
        gen.node = node.value
        visit_call(gen, node.value, discarded=True)
    else:
        gen.visit(node.value)


# ---- assignments ------------------------------------------------------------------------------------------------------------------


@visits(ast.Assign)
def visit_assign(gen: Generator, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        raise gen.unsupported("chained assignment (a = b = c) is not supported in a kernel: write one assignment per name", node.targets[1])
    target = node.targets[0]
    if isinstance(target, ast.Name) and target.id in gen.frame.constants:
        _assign_constant(gen, target, gen.visit(node.value), node)
    else:
        unpack(gen, target, gen.visit(node.value))


@visits(ast.AugAssign)
def visit_augmented_assign(gen: Generator, node: ast.AugAssign) -> None:
    target = node.target
    if not isinstance(target, ast.Name):
        unpack(gen, target, None)  # raises
    if target.id in gen.frame.constants:
        raise gen.error(f"{target.id} is already defined. constexpr cannot be reassigned.")
    value = binary(gen, node.op, gen.lookup(target.id), gen.visit(node.value))
    gen.assign(target.id, gen.as_variable(value))


@visits(ast.AnnAssign)
def visit_annotated_assign(gen: Generator, node: ast.AnnAssign) -> None:
    if not _is_constexpr_annotation(gen, node.annotation):
        if node.value is not None:
            unpack(gen, node.target, gen.visit(node.value))
        return
    if not isinstance(node.target, ast.Name):
        raise gen.unsupported("tl.constexpr annotates one name", node.target)
    if node.value is None:
        gen.frame.constants[node.target.id] = None
    else:
        _assign_constant(gen, node.target, gen.visit(node.value), node)


def _is_constexpr_annotation(gen: Generator, annotation: ast.expr) -> bool:
    """Whether a local annotation is tl.constexpr under any name; Python does not evaluate the others, and neither does the front end."""
    if isinstance(annotation, ast.Constant):
        return str(annotation.value).rpartition(".")[2] == "constexpr"
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "constexpr"
    try:
        return isinstance(annotation, ast.Name) and gen.frame.function.resolve(annotation.id) is core.constexpr
    except NameError:
        return False


def _assign_constant(gen: Generator, target: ast.Name, value: Any, node: ast.AST) -> None:
    """Define a local constant. The same statement may define it again, in an unrolled loop."""
    name, constants = target.id, gen.frame.constants
    if name in gen.frame.scope and constants.get(name) is not node:
        raise gen.error(f"{name} is already defined. constexpr cannot be reassigned.", target)
    if core.flatten(value):
        raise gen.error(f"{name} is declared tl.constexpr, but gets {describe(value)}, which is known only at run time", node.value)
    gen.assign(name, value)
    constants[name] = node


# ---- assert and with ----------------------------------------------------------------------------------------------------------------


@visits(ast.Assert)
def visit_assert(gen: Generator, node: ast.Assert) -> None:
    test = gen.visit(node.test)
    message = gen.visit(node.msg) if node.msg is not None else ""
    if not isinstance(message, str):
        raise gen.error("the message of an assert must be a string constant", node.msg)
    device_assert(test, message)


@visits(ast.With)
def visit_with(gen: Generator, node: ast.With) -> None:
    if contains_return(node):
        raise gen.unsupported(
            "Cannot have `return` statements inside `with` statements in triton: return after it",
            next(child for child in ast.walk(node) if isinstance(child, ast.Return)),
        )
    managers = []
    for item in node.items:
        manager = gen.visit(item.context_expr)
        if not hasattr(manager, "__enter__") or not hasattr(manager, "__exit__"):
            raise gen.error(f"{describe(manager)} is no context manager", item.context_expr)
        value = call(gen, manager.__enter__, (), {})
        if item.optional_vars is not None:
            unpack(gen, item.optional_vars, value)
        managers.append(manager)
    gen.visit_all(node.body)
    for manager in reversed(managers):
        call(gen, manager.__exit__, (None, None, None), {})
