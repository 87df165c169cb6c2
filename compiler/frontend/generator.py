"""The code generator: which function and which expression is being visited, what its names mean, and how errors find their place.

Values are those of the language (`language/core.py`); compile-time constants are plain Python objects, never wrapped in constexpr. The
visitors are plain functions in `statements`, `control_flow`, `expressions` and `calls`, found by the class of the node.
"""

from __future__ import annotations

import ast
import enum
from types import ModuleType
from typing import Any

from mlir import ir

from tilewright import knobs
from tilewright.errors import CompilationError, CompileTimeAssertionFailure, SourceSite, UnsupportedLanguageConstruct, source_site
from tilewright.language import core
from tilewright.language.dtypes import base_type, int1
from tilewright.language.semantic.cast import cast
from tilewright.language.semantic.debug import StaticAssertionError
from tilewright.language.semantic.session import Semantic
from tilewright.language.semantic.shape import unsplat
from tilewright.language.semantic.values import to_tensor

from .function import KernelFunction
from .mlir_builder import MlirBuilder
from .syntax import UNSUPPORTED, VISITORS

_NUMBERS = (bool, int, float)


class Frame:
    """One function in the course of being visited.

    `scope` maps its names to values; `lost` says why a name that was assigned has no value now; `constants` are the names declared
    `tl.constexpr`, with the node that declared them."""

    __slots__ = ("call_loc", "call_node", "constants", "depth", "function", "lost", "parent", "scope")

    def __init__(self, function: KernelFunction, scope: dict[str, Any], parent: Frame | None, call_node: ast.AST | None, call_loc: Any):
        self.function = function
        self.scope = scope
        self.parent = parent
        self.call_node = call_node
        self.call_loc = call_loc
        self.depth = parent.depth + 1 if parent else 0
        self.lost: dict[str, str] = {}
        self.constants: dict[str, ast.AST | None] = {}

    def site(self, node: ast.AST | None) -> SourceSite | None:
        f = self.function
        return source_site(f.src, node, f.file_name, f.def_line, f.def_col, f.__name__)


class Generator:
    """Visits functions and emits their operations into one module. `semantic` is set by whoever makes it (functions.KernelSemantic)."""

    semantic: Semantic

    def __init__(self, module: ir.Module):
        self.module = module
        self.context = module.context
        self.builder = MlirBuilder(self.locate)
        self.frame: Frame | None = None
        self.node: ast.AST | None = None
        self.outlined: dict[tuple, Any] = {}  # functions kept as functions, see functions.call_outlined
        self._located: ast.AST | None = None
        self._location: ir.Location | None = None
        self._captured: dict[tuple[int, str], Any] = {}

    # ---- visiting -----------------------------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> Any:
        """Visit one statement or expression. When it raises, `self.node` stays at the innermost node: the place of the error."""
        visitor = VISITORS.get(type(node))
        previous, self.node = self.node, node
        if visitor is None:
            raise self.unsupported(UNSUPPORTED.get(type(node), f"{type(node).__name__} is not supported in a kernel"))
        value = visitor(self, node)
        self.node = previous
        return value

    def visit_all(self, statements: list[ast.stmt]) -> None:
        """Visit statements among which no `return` is allowed."""
        for statement in statements:
            self.visit(statement)

    def locate(self) -> ir.Location:
        """The location of the current node, with the chain of inlined calls."""
        node = self.node
        if node is not self._located or self._location is None:
            frame = self.frame
            function = frame.function
            line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
            loc = ir.Location.file(function.file_name, function.def_line + line - 1, function.def_col + col + 1, self.context)
            if frame.call_loc is not None:
                loc = ir.Location.callsite(loc, [frame.call_loc], self.context)
            self._located, self._location = node, loc
        return self._location

    def enter(self, frame: Frame, node: ast.AST) -> None:
        """Go on in `frame`, at `node`."""
        self.frame, self.node, self._location = frame, node, None

    # ---- errors ---------------------------------------------------------------------------------------------------------------

    def error(self, message: object, node: ast.AST | None = None, kind: type[CompilationError] = CompilationError) -> CompilationError:
        """An error at `node` (default: the current one) with the calls that led there."""
        frame, function = self.frame, self.frame.function
        callers, inner = [], frame
        while inner.parent is not None:
            callers.append(inner.parent.site(inner.call_node))
            inner = inner.parent
        return kind(
            function.src,
            node if node is not None else self.node,
            message,
            file_name=function.file_name,
            first_line=function.def_line,
            indent=function.def_col,
            function=function.__name__,
            call_sites=tuple(site for site in callers if site is not None),
        )

    def unsupported(self, message: str, node: ast.AST | None = None) -> CompilationError:
        return self.error(message, node, UnsupportedLanguageConstruct)

    def place(self, error: Exception) -> CompilationError:
        """`error` as a CompilationError at the current node; one that has a place already stays."""
        if isinstance(error, CompilationError):
            return error if error.site is not None else self.error(error.error_message, kind=type(error))
        if isinstance(error, StaticAssertionError):
            text = str(error) or "the condition is false"
            return self.error(f"static_assert failed: {text}", kind=CompileTimeAssertionFailure)
        if isinstance(error, RecursionError):
            return self.error("the expression or the chain of calls is nested too deeply; does a recursion end on a constexpr condition?")
        text = str(error) if isinstance(error, _USER_ERRORS) else f"{type(error).__name__}: {error}"
        placed = self.error(text or type(error).__name__)
        placed.__cause__ = error
        if isinstance(error, _USER_ERRORS) and not knobs.compilation.front_end_debugging:
            error.__traceback__ = None  # the user's mistake: where in the compiler it was noticed says nothing
        return placed

    # ---- names ------------------------------------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Any:
        """The value of a name: local, else captured from an enclosing function or the module."""
        scope = self.frame.scope
        if name in scope:
            return scope[name]
        if name in self.frame.lost:
            raise self.error(f"{name} is not defined here: {self.frame.lost[name]}")
        key = (id(self.frame.function), name)
        if key not in self._captured:
            self._captured[key] = self._capture(name)
        return self._captured[key]

    def _capture(self, name: str) -> Any:
        try:
            value = self.frame.function.resolve(name)
        except NameError as error:
            raise self.place(error) from None
        if isinstance(value, core.constexpr) or _may_be_captured(value) or knobs.compilation.allow_non_constexpr_globals:
            return core.unwrap(value)
        shown = repr(value) if len(repr(value)) <= 40 else "..."
        raise self.error(
            f"Cannot access global variable {name} from within @jit'ed function: it is a plain {type(value).__name__}, which may change "
            f"after the kernel is compiled. Make it a constant ({name} = tl.constexpr({shown})), or pass it as a tl.constexpr argument"
        )

    def assign(self, name: str, value: Any) -> None:
        self.frame.scope[name] = value
        if self.frame.lost:
            self.frame.lost.pop(name, None)

    # ---- values -----------------------------------------------------------------------------------------------------------------

    def as_variable(self, value: Any) -> Any:
        """What a variable holds when `value` is assigned to it: Python numbers become scalar tensors, in tuples too."""
        if type(value) in _NUMBERS:
            return to_tensor(self.semantic, value)
        if isinstance(value, tuple):
            return rebuild_tuple(value, [self.as_variable(v) for v in value])
        return value

    def truth(self, test: ast.expr, what: str) -> bool | ir.Value:
        """The condition `test`: a Python bool if it is known now, else the handle of an i1."""
        return self.as_condition(self.visit(test), test, what)

    def as_condition(self, value: Any, test: ast.expr, what: str) -> bool | ir.Value:
        """The value of `test` as a condition of `what`."""
        if isinstance(value, core.tensor):
            if value.type.is_block():
                if value.type.numel != 1:
                    raise self.error(
                        f"Boolean value of Tensor with more than one value is ambiguous: the condition of {what} has type {value.type}. "
                        "Use tl.where, a mask, or a reduction to a scalar",
                        test,
                    )
                value = unsplat(self.semantic, value)
            return cast(self.semantic, value, int1).handle
        if value is None or isinstance(value, int):
            return bool(value)
        raise self.unsupported(f"the condition of {what} must be a bool, an int, None or a scalar tensor, not {describe(value)}", test)


# what the language and host functions raise on a mistake in the kernel; anything else is a mistake of the compiler
_USER_ERRORS = (TypeError, ValueError, NameError, AttributeError, NotImplementedError, RuntimeError, ArithmeticError)


def kernel_function(fn: Any) -> KernelFunction:
    """The function itself under wrappers such as an autotuner."""
    while not isinstance(fn, KernelFunction):
        fn = fn.fn
    return fn


def is_kernel_function(fn: Any) -> bool:
    """Whether `fn` is a @jit function, or a wrapper around one."""
    while not isinstance(fn, KernelFunction):
        fn = fn.__dict__.get("fn") if hasattr(fn, "__dict__") else None
        if fn is None:
            return False
    return True


def rebuild_tuple(like: tuple, items: list[Any]) -> tuple:
    """A tuple of the class of `like`; Python's plain tuple becomes the language's."""
    return type(like)(*items) if hasattr(like, "_fields") else core.tuple(items)


def describe(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, core.base_value):
        return f"a value of type {value.type}"
    return f"{value!r} of type {type(value).__name__}" if value is not None else "None"


def _may_be_captured(value: Any) -> bool:
    """Globals that cannot change under a compiled kernel, or that count in its cache key: functions, modules, classes, types, enums."""
    if isinstance(value, tuple):
        return all(isinstance(v, core.constexpr) or _may_be_captured(v) for v in value)
    return isinstance(value, (ModuleType, type, base_type, enum.Enum)) or callable(value)
