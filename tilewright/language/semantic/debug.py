"""Printing, assertions and hints to the compiler."""

from __future__ import annotations

import builtins
from typing import Any

from ..core import builtin, shown, tensor
from ..dtypes import int1, int32
from .arith import emit_select, logical_not, logical_or
from .cast import cast
from .session import Semantic
from .values import broadcast_all, broadcast_to, constant, to_tensor

# ---- at compile time ------------------------------------------------------------------------------------------------------


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False, _semantic=None):
    """Print when the kernel is compiled; tensors appear as their type and shape."""
    print(*[_semantic.show(v) if isinstance(v, tensor) else v for v in values], sep=sep, end=end, file=file, flush=flush)


class StaticAssertionError(AssertionError):
    """A static_assert that does not hold; the front end makes it a CompileTimeAssertionFailure."""


@builtin
def static_assert(cond, msg="", _semantic=None):
    """Stop the compilation with `msg` unless the constant `cond` holds."""
    if isinstance(cond, tensor):
        raise NotImplementedError(
            "Assertion condition could not be determined at compile-time. Make sure that it depends only on constexpr"
        )
    if not cond:
        raise StaticAssertionError(msg)


# ---- at run time ----------------------------------------------------------------------------------------------------------


@builtin
def device_print(prefix, *args, hex=False, _semantic=None):
    """Print `prefix` and each element of the tensors or numbers when the kernel runs, one line per element with its program and index.

    `prefix` is a string literal of printable ASCII. `hex` prints integers and pointers in hexadecimal."""
    if not isinstance(prefix, str):
        raise TypeError(f"device_print: prefix must be a string, got {prefix!r}")
    bad = [c for c in prefix if not 32 <= ord(c) < 127]
    if bad:
        raise ValueError(f"device_print: prefix must be printable ASCII, {prefix!r} has {bad[0]!r}")
    values = [to_tensor(_semantic, a) for a in args]
    signed = [v.dtype.is_int_signed() for v in values]
    prefix = f" {prefix.strip()}" + (": " if values and not prefix.rstrip().endswith(":") else " " if values else "")
    _semantic.builder.print(prefix, [v.handle for v in values], [v.type for v in values], hex=bool(hex), is_signed=signed)


@builtin
def device_assert(cond, msg="", mask=None, _semantic=None):
    """With `debug` on, trap with `msg` where `cond` is false and `mask`, if any, is set."""
    if not _semantic.option("debug"):
        return
    condition = cast(_semantic, to_tensor(_semantic, cond), int1)
    if mask is not None:
        condition, mask = broadcast_all(_semantic, condition, cast(_semantic, to_tensor(_semantic, mask), int1))
    _semantic.builder.assert_(condition.handle, None if mask is None else mask.handle, str(msg), condition.type)


@builtin
def debug_barrier(_semantic=None):
    """All threads of the program wait for each other."""
    _semantic.builder.barrier()


@builtin
def expect_zero(x, mask, _semantic=None):
    """`x`, which is zero wherever `mask` is set; with `debug` on that is asserted."""
    x = to_tensor(_semantic, x)
    mask = broadcast_to(_semantic, cast(_semantic, to_tensor(_semantic, mask), int1), x.type.shape)
    if not _semantic.option("debug"):
        return x
    is_zero = logical_not(x, _semantic=_semantic)
    allowed = logical_or(logical_not(mask, _semantic=_semantic), is_zero, _semantic=_semantic)
    _semantic.builder.assert_(allowed.handle, None, "expect_zero: a masked element is not zero", allowed.type)
    zero = cast(_semantic, constant(_semantic, 0, x.type.with_element_ty(int32)), x.dtype)
    return emit_select(_semantic, mask, zero, x)


# ---- hints ----------------------------------------------------------------------------------------------------------------


@builtin
def assume(cond, _semantic=None):
    """Promise that the scalar `cond` holds; the compiler may rely on it."""
    if not isinstance(cond, tensor):
        return
    if cond.type.is_block():
        raise ValueError(f"assume needs a scalar condition, got {shown(cond)}")
    _semantic.builder.assume(cast(_semantic, cond, int1).handle)


def _hint(s: Semantic, name: str, what: str, x: Any, values: Any) -> Any:
    values = values if isinstance(values, builtins.tuple) else (values,)
    for v in values:
        if not isinstance(v, int) or isinstance(v, bool):
            raise TypeError(f"{what}: values must have type `constexpr[int]`, got {shown(v)}")
    if not isinstance(x, tensor):
        return x
    rank = len(x.type.shape)
    if len(values) != max(1, rank):
        raise ValueError(
            f"Shape of input to {what} does not match the length of values: {shown(x)} needs {max(1, rank)}, got {len(values)}"
        )
    s.builder.hint(x.handle, name, values)
    return x


@builtin
def multiple_of(input, values, _semantic=None):
    """Promise, per dimension, that the values are multiples of a number. Takes effect on the tensor itself, and returns it."""
    return _hint(_semantic, "tile.divisibility", "multiple_of", input, values)


@builtin
def max_contiguous(input, values, _semantic=None):
    """Promise, per dimension, that groups of so many values are consecutive. Takes effect on the tensor itself, and returns it."""
    return _hint(_semantic, "tile.contiguity", "max_contiguous", input, values)


@builtin
def max_constancy(input, values, _semantic=None):
    """Promise, per dimension, that groups of so many values are equal. Takes effect on the tensor itself, and returns it."""
    return _hint(_semantic, "tile.constancy", "max_constancy", input, values)
