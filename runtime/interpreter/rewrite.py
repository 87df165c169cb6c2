"""Give a kernel's Python the meaning that it has when compiled, and leave it otherwise as it is.

The function keeps its file, its line numbers, its globals and the cells of its closure, so that tracebacks, `print`, `breakpoint()` and pdb
work on the user's own lines. Rewritten are: assignments (numbers become scalar tensors), `and`, `or`, `not` and chains of comparisons
(both sides are evaluated on tensors), `assert`, and the names of `kernel_python.BUILTINS`. The helpers come in as closure variables, so
nothing is added to the user's module.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from tilewright.compiler.frontend.function import KernelFunction
from tilewright.language import core

from . import kernel_python

_PREFIX = "_tilewright_"
_HELPERS = (
    "variable", "constant", "with_methods", "with_value", "and_goes_on", "or_goes_on", "both", "either", "negation", "check",
    "plain",
)  # fmt: skip

_TALKING = {"print", "breakpoint", "input", "pdb", "set_trace", "device_print"}

# every code object that runs a kernel's lines -> the function's name; diagnostics finds the user's frames by it
KERNEL_CODES: dict[CodeType, str] = {}


def rewrite(kernel: KernelFunction) -> FunctionType:
    """The Python function that carries out `kernel` under an active interpreter session."""
    if kernel.fn.__code__.co_flags & inspect.CO_GENERATOR:
        raise TypeError(f"{kernel.file_name}:{kernel.def_line}: yield is not supported in a kernel: return a tuple")
    tree = copy.deepcopy(kernel.ast())
    rewriter = _Rewriter(kernel)
    tree.decorator_list, tree.returns = [], None
    for arg in ast.walk(tree.args):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    tree.args.defaults = [ast.copy_location(ast.Constant(None), d) for d in tree.args.defaults]
    tree.args.kw_defaults = [d and ast.copy_location(ast.Constant(None), d) for d in tree.args.kw_defaults]
    tree.body = [rewriter.visit(statement) for statement in tree.body]
    _shift_columns(tree, kernel.def_col)
    ast.increment_lineno(tree, kernel.def_line - 1)

    cells: dict[str, CellType] = {_PREFIX + name: CellType(getattr(kernel_python, name)) for name in _HELPERS}
    cells |= {_PREFIX + fn.__name__: CellType(meaning) for fn, meaning in kernel_python.BUILTINS.items()}
    original = kernel.fn
    cells |= dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
    return _build(tree, original, cells, kernel.file_name)


def _build(tree: ast.FunctionDef, original: FunctionType, cells: dict[str, CellType], file_name: str) -> FunctionType:
    """Compile `tree` as a function whose free variables are `cells`."""
    outer = ast.FunctionDef(
        name="scope",
        args=ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in cells], kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[tree],
        decorator_list=[],
        type_params=[],
    )
    ast.copy_location(outer, tree)
    name, tree.name = tree.name, _PREFIX + "kernel"  # its own name is what it is in the module, or in the cell that it closes over
    module = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
    scope = next(c for c in compile(module, file_name, "exec").co_consts if isinstance(c, CodeType))
    code = next(c for c in scope.co_consts if isinstance(c, CodeType) and c.co_name == tree.name).replace(co_name=name)
    _register(code, original.__qualname__)
    closure = tuple(cells[name] for name in code.co_freevars)
    function = FunctionType(code, original.__globals__, original.__name__, original.__defaults__, closure)
    function.__kwdefaults__ = original.__kwdefaults__
    function.__qualname__ = original.__qualname__
    return function


def _register(code: CodeType, name: str) -> None:
    KERNEL_CODES[code] = name
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _register(inner, name)


def talks(python: FunctionType) -> bool:
    """Whether a kernel's own code prints or enters a debugger: then its programs run one by one."""
    return not _TALKING.isdisjoint(python.__code__.co_names)


def _shift_columns(tree: ast.AST, columns: int) -> None:
    """Undo the dedenting of the source, so that carets in tracebacks are right."""
    if columns:
        for node in ast.walk(tree):
            if hasattr(node, "col_offset"):
                node.col_offset += columns
                if node.end_col_offset is not None:
                    node.end_col_offset += columns


class _Rewriter(ast.NodeTransformer):
    def __init__(self, kernel: KernelFunction):
        self.kernel = kernel
        tree = kernel.ast()
        self.local = set(kernel.arg_names)
        self.local |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.constants = {
            n.target.id
            for n in ast.walk(tree)
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and self._is_constexpr(n.annotation)
        }
        self.temporaries = 0

    # ---- names ----------------------------------------------------------------------------------------------------------------

    def _captured(self, name: str) -> Any:
        """The value of a name that is not local now, or None."""
        if name in self.local:
            return None
        try:
            return self.kernel.resolve(name)
        except NameError:
            return None

    def _is_constexpr(self, annotation: ast.expr) -> bool:
        if isinstance(annotation, ast.Constant):
            return str(annotation.value).rpartition(".")[2] == "constexpr"
        if isinstance(annotation, ast.Attribute):
            return annotation.attr == "constexpr"
        return isinstance(annotation, ast.Name) and self._captured(annotation.id) is core.constexpr

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and hasattr(builtins, node.id):
            value = self._captured(node.id)
            if callable(value) and value is getattr(builtins, node.id) and value in kernel_python.BUILTINS:
                return ast.copy_location(ast.Name(_PREFIX + node.id, ast.Load()), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node.value = self.visit(node.value)
        if not isinstance(node.ctx, ast.Load):
            return node
        if isinstance(node.value, ast.Name) and isinstance(self._captured(node.value.id), ModuleType):
            return node
        if node.attr == "value":
            node.value = _call("with_value", node.value)
        elif hasattr(core.tensor, node.attr):
            node.value = _call("with_methods", node.value)
        return node

    # ---- assignments ------------------------------------------------------------------------------------------------------------

    def _assigned(self, targets: list[ast.expr], value: ast.expr) -> ast.expr:
        constant = any(isinstance(t, ast.Name) and t.id in self.constants for t in targets)
        return _call("constant" if constant else "variable", value)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        node.value = self._assigned(node.targets, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        value = self._assigned([node.target], self.visit(node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.value = value
            return node
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = _call("variable", ast.copy_location(ast.BinOp(old, node.op, value), node))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        self.generic_visit(node)
        node.value = _call("variable", node.value)
        return node

    # ---- logic --------------------------------------------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        result, *rest = node.values
        for operand in rest:
            result = self._joined(isinstance(node.op, ast.And), result, operand, node)
        return result

    def _joined(self, is_and: bool, left: ast.expr, right: ast.expr, node: ast.expr) -> ast.expr:
        """`both(t, right) if and_goes_on(t := left) else t`, or the same for `or`."""
        store, load = self._temporary(left)
        test = _call("and_goes_on" if is_and else "or_goes_on", store)
        return ast.copy_location(ast.IfExp(test, _call("both" if is_and else "either", load, right), load), node)

    def _temporary(self, value: ast.expr) -> tuple[ast.expr, ast.expr]:
        self.temporaries += 1
        name = f"{_PREFIX}{self.temporaries}"
        store = ast.NamedExpr(ast.Name(name, ast.Store()), value)
        return ast.copy_location(store, value), ast.copy_location(ast.Name(name, ast.Load()), value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("negation", node.operand, at=node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return self._against_none(node)
        result, left = None, node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            last = right is node.comparators[-1]
            store, load = (right, None) if last else self._temporary(right)
            holds = self._against_none(ast.copy_location(ast.Compare(left, [op], [store]), node))
            result = holds if result is None else self._joined(True, result, holds, node)
            left = load
        return result

    def _against_none(self, node: ast.Compare) -> ast.Compare:
        """`x == None` asks whether x is None."""
        if any(isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.comparators[0])):
            replacement = {ast.Eq: ast.Is, ast.NotEq: ast.IsNot}.get(type(node.ops[0]))
            node.ops = [replacement()] if replacement else node.ops
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            node.left, node.comparators = _unwrapped(node.left), [_unwrapped(node.comparators[0])]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        self.generic_visit(node)
        call = _call("check", node.test, *([node.msg] if node.msg else []), at=node)
        return ast.copy_location(ast.Expr(call), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Python allows no `:=` in what a comprehension iterates over, so that part stays as it is."""
        node.ifs = [self.visit(test) for test in node.ifs]
        return node


def _call(helper: str, *args: ast.expr, at: ast.AST | None = None) -> ast.Call:
    at = at if at is not None else args[0]
    function = ast.copy_location(ast.Name(_PREFIX + helper, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(args), []), at)


def _unwrapped(node: ast.expr) -> ast.expr:
    """A constexpr as the Python object in it, anything else as it is."""
    return node if isinstance(node, ast.Constant) else _call("plain", node)
