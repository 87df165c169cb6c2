"""Calls: of the language's functions, @jit functions, host functions on constants, classes, and Python's builtins."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from tilewright.language import core, iterators
from tilewright.language.dtypes import dtype
from tilewright.language.semantic import arith, debug, math

from .functions import call_function
from .generator import Generator, describe, is_kernel_function
from .syntax import visits


@visits(ast.Call)
def visit_call(gen: Generator, node: ast.Call, discarded: bool = False) -> Any:
    """A call; `discarded` if it is a statement of its own."""
    fn = gen.visit(node.func)
    args: list[Any] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            args.extend(_starred(gen, arg))
        else:
            args.append(gen.visit(arg))
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise gen.unsupported("`**` arguments are not supported in a kernel: write the keywords out", keyword.value)
        kwargs[keyword.arg] = gen.visit(keyword.value)
    if discarded and (reason := getattr(fn, "_must_use_result", False)):
        why = f": {reason}" if isinstance(reason, str) else ""
        raise gen.error(f"The result of {_name(fn)}() is not being used{why}")
    return call(gen, fn, tuple(args), kwargs)


def _starred(gen: Generator, arg: ast.Starred) -> tuple:
    value = gen.visit(arg.value)
    if not isinstance(value, (tuple, list)):
        raise gen.error(f"`*` takes a tuple, not {describe(value)}", arg)
    return tuple(value)


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def call(gen: Generator, fn: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call `fn` on values of the kernel; constants among the results come back as plain Python objects."""
    if core.is_builtin(fn):
        return core.unwrap(fn(*args, **kwargs))
    if isinstance(fn, MethodType) and is_kernel_function(fn.__func__):
        return call_function(gen, fn.__func__, (fn.__self__, *args), kwargs)
    if is_kernel_function(fn):
        return call_function(gen, fn, args, kwargs)
    replacement = _builtin_function(fn)
    if replacement is not None:
        return replacement(gen, *args, **kwargs)
    if getattr(fn, "__tilewright_constexpr_function__", False):  # a bound method forwards the mark
        return core.unwrap(fn(*args, **kwargs))
    if isinstance(fn, type):
        return _make(gen, fn, args, kwargs)
    if isinstance(fn, MethodType) or isinstance(getattr(fn, "__self__", None), (tuple, str, dtype)) or _is_ours(fn):
        return core.unwrap(fn(*args, **kwargs))  # written in plain Python: runs now, and may emit operations
    if not callable(fn):
        raise gen.error(f"{describe(fn)} cannot be called")
    raise gen.unsupported(
        f"{_name(fn)} is a plain Python function and cannot be called in a kernel: decorate it with @jit, "
        "or with @constexpr_function if it computes constants"
    )


def _is_ours(fn: Any) -> bool:
    """Whether `fn` is a function of the language, such as `tl.str_to_ty` or `tl.aggregate_replace`."""
    return isinstance(fn, FunctionType) and fn.__module__.startswith(core.__package__)


def _make(gen: Generator, cls: type, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Make an object of a class: an aggregate, a named tuple, an iterator of the language."""
    if cls is core.tensor:
        raise gen.error("tl.tensor cannot be made in a kernel: use tl.full, tl.zeros or tl.to_tensor")
    if cls is core.constexpr:
        if core.flatten(args):
            raise gen.error(f"tl.constexpr takes a constant, not {describe(args[0])}, which is known only at run time")
        return core.unwrap(*args, **kwargs)
    return core.unwrap(cls(*args, **kwargs))


# ---- Python's builtins ------------------------------------------------------------------------------------------------------------


def _static(fn: Callable) -> Callable:
    """A builtin that runs now, on constants."""

    @functools.wraps(fn)
    def run(gen: Generator, *args: Any, **kwargs: Any) -> Any:
        for value in args:
            if isinstance(value, core.tensor):
                hint = f"; convert with x.to(tl.{fn.__name__}32)" if fn in (int, float) else ""
                raise gen.error(f"{fn.__name__}() runs at compile time and takes constants only, not {describe(value)}{hint}")
        return fn(*args, **kwargs)

    return run


def _print(gen: Generator, *args: Any, **kwargs: Any) -> None:
    if not args or not isinstance(args[0], str) or kwargs.keys() - {"hex"}:
        raise gen.error('print in a kernel is tl.device_print: it takes a string first, as in print("x", x), and as keyword only hex')
    debug.device_print(*args, **kwargs)


def _extremum(fn: Callable, elementwise: Callable) -> Callable:
    def run(gen: Generator, *args: Any) -> Any:
        args = tuple(args[0]) if len(args) == 1 and isinstance(args[0], tuple) else args
        if len(args) < 2:
            raise gen.error(f"{fn.__name__}() takes two values or more; tl.{fn.__name__}(x, axis) reduces a tensor")
        if core.flatten(args):
            return functools.reduce(elementwise, args)
        for value in args:
            if isinstance(value, float) and str(value) in ("nan", "-0.0"):
                raise gen.error(f"{fn.__name__}() of constants does not take NaN or -0.0, on which Python and the device differ")
        return fn(*args)

    return run


def _range(gen: Generator, *args: Any, **kwargs: Any) -> Any:
    return iterators.range(*args, **kwargs)


def _tuple(gen: Generator, *args: Any) -> core.tuple:
    if not args:
        return core.tuple(())
    if len(args) == 1 and isinstance(args[0], (iterators.range, iterators.static_range)):
        return core.tuple(_static(builtins.list)(gen, args[0]))
    if len(args) != 1 or not isinstance(args[0], (tuple, str)):
        raise gen.error("list() and tuple() take one tuple")
    return core.tuple(args[0])


def _isinstance(gen: Generator, value: Any, classes: Any) -> bool:
    wanted = classes if isinstance(classes, tuple) else (classes,)
    if core.constexpr in wanted and not isinstance(value, (core.base_value, tuple)):
        return True
    return isinstance(value, tuple(wanted))


def _getattr(gen: Generator, holder: Any, name: str, *default: Any) -> Any:
    return core.unwrap(getattr(holder, name, *default))


def _hasattr(gen: Generator, holder: Any, name: str) -> bool:
    return hasattr(holder, name)


def _abs(gen: Generator, value: Any) -> Any:
    return math.abs(value) if isinstance(value, core.tensor) else abs(value)


def _len(gen: Generator, value: Any) -> int:
    if isinstance(value, core.tensor):
        raise gen.error("a tensor has no len(): use x.shape[0] or x.numel")
    return len(value)


_BUILTINS: dict[Any, Callable] = {
    print: _print,
    min: _extremum(min, arith.minimum),
    max: _extremum(max, arith.maximum),
    int: _static(int),
    float: _static(float),
    bool: _static(bool),
    str: _static(str),
    len: _len,
    range: _range,
    list: _tuple,
    tuple: _tuple,
    core.tuple: _tuple,
    isinstance: _isinstance,
    getattr: _getattr,
    hasattr: _hasattr,
    abs: _abs,
}


def _builtin_function(fn: Any) -> Callable | None:
    try:
        return _BUILTINS.get(fn)
    except TypeError:  # not hashable
        return None
