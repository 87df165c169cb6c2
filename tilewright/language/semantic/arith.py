"""Operators: arithmetic, pointer arithmetic, bits, shifts, comparisons, logic, minimum and maximum."""

from __future__ import annotations

from typing import Any

from ..core import PropagateNan, builtin, shown, tensor
from ..dtypes import dtype, float32, int1, int32, int64
from .cast import cast, emit_cast
from .promotion import IncompatibleTypeErrorImpl, binary_operands, promote, select_operands
from .session import Semantic
from .values import broadcast_all, broadcast_shape, broadcast_to, constant, is_number, to_tensor

# ---- emission: fp8 has no arithmetic, it is computed in fp32 --------------------------------------------------------------


def emit_unary(s: Semantic, kind: str, x: tensor) -> tensor:
    if x.dtype.is_fp8():
        return cast(s, emit_unary(s, kind, cast(s, x, float32)), x.dtype)
    return tensor(s.builder.unary(kind, x.handle, x.type), x.type)


def emit_binary(s: Semantic, kind: str, a: tensor, b: tensor) -> tensor:
    """`kind` on operands of one type and shape."""
    if a.dtype.is_fp8():
        return cast(s, emit_binary(s, kind, cast(s, a, float32), cast(s, b, float32)), a.dtype)
    return tensor(s.builder.binary(kind, a.handle, b.handle, a.type), a.type)


def emit_select(s: Semantic, condition: tensor, a: tensor, b: tensor) -> tensor:
    """`condition`, `a` and `b` have one shape."""
    return tensor(s.builder.select(condition.handle, a.handle, b.handle, a.type), a.type)


def _emit_compare(s: Semantic, predicate: str, a: tensor, b: tensor) -> tensor:
    if a.dtype.is_fp8():
        a, b = cast(s, a, float32), cast(s, b, float32)
    return tensor(s.builder.compare(predicate, a.handle, b.handle, a.type), a.type.with_element_ty(int1))


# ---- arithmetic ---------------------------------------------------------------------------------------------------------


def _dtype_of(x: Any) -> dtype | None:
    return x.dtype if isinstance(x, tensor) else None


def _is_ptr(x: Any) -> bool:
    return isinstance(x, tensor) and x.dtype.is_ptr()


def _offset_ptr(s: Semantic, ptr: tensor, offset: Any) -> tensor:
    """ptr + offset, in elements. Unsigned offsets are zero-extended."""
    offset = to_tensor(s, offset)
    if not offset.dtype.is_int():
        raise TypeError(f"a pointer can be offset by integers only, not by {offset.dtype}")
    if offset.dtype.is_int_unsigned():
        offset = cast(s, offset, int64)
    elif offset.dtype.int_bitwidth < 32:
        offset = cast(s, offset, int32)
    shape = broadcast_shape(ptr.type.shape, offset.type.shape)
    ptr, offset = broadcast_to(s, ptr, shape), broadcast_to(s, offset, shape)
    return tensor(s.builder.addptr(ptr.handle, offset.handle, offset.type, ptr.type), ptr.type)


def _check_overflow(s: Semantic, kind: str, a: tensor, b: tensor) -> None:
    """Under `sanitize_overflow` and `debug`: assert that the result of addi, subi or muli fits."""
    ty = a.dtype
    if not (s.option("sanitize_overflow") and s.option("debug")) or not ty.is_int() or not 8 <= ty.int_bitwidth < 64:
        return
    exact = emit_binary(s, kind, cast(s, a, int64), cast(s, b, int64))
    low, high = (constant(s, v, exact.type) for v in (ty.get_int_min_value(), ty.get_int_max_value()))
    fits = emit_binary(s, "andi", _emit_compare(s, "sge", exact, low), _emit_compare(s, "sle", exact, high))
    s.builder.assert_(fits.handle, None, f"{ty} overflow detected for operation {kind[:-1]}", fits.type)


def _add_like(s: Semantic, stem: str, a: Any, b: Any, sanitize_overflow: bool) -> tensor:
    a, b = binary_operands(s, a, b)
    if a.dtype.is_floating():
        return emit_binary(s, stem + "f", a, b)
    if sanitize_overflow:
        _check_overflow(s, stem + "i", a, b)
    return emit_binary(s, stem + "i", a, b)


@builtin
def add(x, y, sanitize_overflow=True, _semantic=None):
    """x + y; one of them may be a pointer, the other an integer."""
    if _is_ptr(x) and _is_ptr(y):
        raise TypeError("cannot add pointers together; offset a pointer by an integer")
    if _is_ptr(x):
        return _offset_ptr(_semantic, x, y)
    if _is_ptr(y):
        return _offset_ptr(_semantic, y, x)
    return _add_like(_semantic, "add", x, y, sanitize_overflow)


@builtin
def sub(x, y, sanitize_overflow=True, _semantic=None):
    """x - y; x may be a pointer and y an integer."""
    if _is_ptr(x):
        if _is_ptr(y):
            raise TypeError("cannot subtract pointers; cast both to tl.int64 first")
        return _offset_ptr(_semantic, x, -y if is_number(y) else negate(_semantic, _widened(_semantic, y)))
    return _add_like(_semantic, "sub", x, y, sanitize_overflow)


def _widened(s: Semantic, offset: tensor) -> tensor:
    """Offsets whose negation may not fit become int64."""
    return (
        cast(s, offset, int64) if offset.dtype.is_int() and (offset.dtype.is_int_unsigned() or offset.dtype.int_bitwidth < 32) else offset
    )


@builtin
def mul(x, y, sanitize_overflow=True, _semantic=None):
    """x * y."""
    return _add_like(_semantic, "mul", x, y, sanitize_overflow)


@builtin
def truediv(x, y, _semantic=None):
    """x / y in fp32, or in fp64 if an operand is."""
    a, b = binary_operands(_semantic, x, y, division=True)
    ty = a.dtype if a.dtype.is_floating() and not a.dtype.is_fp8() else float32
    return emit_binary(_semantic, "divf", cast(_semantic, a, ty), cast(_semantic, b, ty))


def _integer_division(s: Semantic, stem: str, symbol: str, x: Any, y: Any) -> tensor:
    a, b = binary_operands(s, x, y, division=True)
    if not a.dtype.is_int():
        raise TypeError(
            f"`{symbol}` is defined on integers, not on {_dtype_of(x) or type(x).__name__} and {_dtype_of(y) or type(y).__name__}"
        )
    return emit_binary(s, stem + ("si" if a.dtype.is_int_signed() else "ui"), a, b)


@builtin
def floordiv(x, y, _semantic=None):
    """x // y on integers, rounded toward zero as in C."""
    return _integer_division(_semantic, "div", "//", x, y)


@builtin
def mod(x, y, _semantic=None):
    """x % y with the sign of x, as in C; on floats fmod."""
    a, b = binary_operands(_semantic, x, y, division=True)
    if a.dtype.is_floating():
        return emit_binary(_semantic, "remf", a, b)
    return emit_binary(_semantic, "remsi" if a.dtype.is_int_signed() else "remui", a, b)


def negate(s: Semantic, x: tensor) -> tensor:
    """-x."""
    if x.dtype.is_ptr():
        raise TypeError(f"wrong type argument to unary minus: {x.dtype}")
    if x.dtype.is_floating():
        return emit_unary(s, "negf", x)
    return emit_binary(s, "subi", constant(s, 0, x.type), x)


# ---- bits ---------------------------------------------------------------------------------------------------------------


def _bitwise_operands(s: Semantic, x: Any, y: Any) -> tuple[tensor, tensor]:
    a, b = binary_operands(s, x, y)
    if not a.dtype.is_int():
        raise IncompatibleTypeErrorImpl(_dtype_of(x) or type(x).__name__, _dtype_of(y) or type(y).__name__)
    return a, b


@builtin
def and_(x, y, _semantic=None):
    """x & y on integers."""
    return emit_binary(_semantic, "andi", *_bitwise_operands(_semantic, x, y))


@builtin
def or_(x, y, _semantic=None):
    """x | y on integers."""
    return emit_binary(_semantic, "ori", *_bitwise_operands(_semantic, x, y))


@builtin
def xor_(x, y, _semantic=None):
    """x ^ y on integers."""
    return emit_binary(_semantic, "xori", *_bitwise_operands(_semantic, x, y))


@builtin
def invert(x, _semantic=None):
    """~x on integers."""
    if not x.dtype.is_int():
        raise TypeError(f"wrong type argument to unary invert: {x.dtype}; integers have it")
    ones = -1 if x.dtype.is_int_signed() else x.dtype.get_int_max_value()
    return emit_binary(_semantic, "xori", x, constant(_semantic, ones, x.type))


def _shift(s: Semantic, x: Any, y: Any, left: bool) -> tensor:
    a, b = _bitwise_operands(s, x, y)
    if is_number(y) and not 0 <= y < a.dtype.int_bitwidth:
        s.warn(f"shift by {y} of a value of {a.dtype.int_bitwidth} bits is undefined")
    return emit_binary(s, "shli" if left else "shrsi" if a.dtype.is_int_signed() else "shrui", a, b)


@builtin
def lshift(x, y, _semantic=None):
    """x << y."""
    return _shift(_semantic, x, y, left=True)


@builtin
def rshift(x, y, _semantic=None):
    """x >> y: arithmetic on signed, logical on unsigned integers."""
    return _shift(_semantic, x, y, left=False)


# ---- comparisons and logic ------------------------------------------------------------------------------------------------


def compare(s: Semantic, op: str, x: Any, y: Any) -> tensor:
    """Elementwise comparison `op` (lt, le, gt, ge, eq, ne) as int1. With a NaN all are false, but for ne."""
    a, b = binary_operands(s, x, y)
    if a.dtype.is_floating():
        predicate = "une" if op == "ne" else "o" + op
    elif op in ("eq", "ne"):
        predicate = op
    else:
        predicate = ("s" if a.dtype.is_int_signed() else "u") + op
    return _emit_compare(s, predicate, a, b)


def _truth(s: Semantic, x: Any) -> tensor:
    return cast(s, to_tensor(s, x), int1)


@builtin
def logical_and(x, y, _semantic=None):
    """Both are not zero; both are evaluated."""
    a, b = broadcast_all(_semantic, _truth(_semantic, x), _truth(_semantic, y))
    return emit_binary(_semantic, "andi", a, b)


@builtin
def logical_or(x, y, _semantic=None):
    """One is not zero; both are evaluated."""
    a, b = broadcast_all(_semantic, _truth(_semantic, x), _truth(_semantic, y))
    return emit_binary(_semantic, "ori", a, b)


@builtin
def logical_not(x, _semantic=None):
    """Whether x is zero."""
    a = _truth(_semantic, x)
    return emit_binary(_semantic, "xori", a, constant(_semantic, True, a.type))


@builtin
def where(condition, x, y, _semantic=None):
    """Elements of x where `condition` is set, of y elsewhere. Both are evaluated; mask a load to keep it from happening."""
    condition = to_tensor(_semantic, condition)
    if not condition.dtype.is_bool():
        _semantic.warn(f"tl.where with a condition of type {condition.dtype} tests it for != 0; pass a comparison to be explicit")
        condition = cast(_semantic, condition, int1)
    a, b = select_operands(_semantic, x, y)
    return emit_select(_semantic, *broadcast_all(_semantic, condition, a, b))


# ---- minimum, maximum, clamp ----------------------------------------------------------------------------------------------


def _propagates(value: Any) -> bool:
    if not isinstance(value, PropagateNan):
        raise TypeError(f"propagate_nan must be tl.PropagateNan.NONE or tl.PropagateNan.ALL, got {shown(value)}")
    return value is PropagateNan.ALL


def _extremum(s: Semantic, stem: str, x: Any, y: Any, propagate_nan: Any) -> tensor:
    a, b = promote(s, to_tensor(s, x), to_tensor(s, y))
    if a.dtype.is_floating():
        return emit_binary(s, f"{stem}imumf" if _propagates(propagate_nan) else f"{stem}numf", a, b)
    if not a.dtype.is_int():
        raise IncompatibleTypeErrorImpl(a.dtype, b.dtype)
    return emit_binary(s, stem + ("si" if a.dtype.is_int_signed() else "ui"), a, b)


@builtin
def minimum(x, y, propagate_nan=PropagateNan.NONE, _semantic=None):
    """The smaller of x and y. Of a NaN and a number it is the number, or NaN with `PropagateNan.ALL`."""
    return _extremum(_semantic, "min", x, y, propagate_nan)


@builtin
def maximum(x, y, propagate_nan=PropagateNan.NONE, _semantic=None):
    """The larger of x and y. Of a NaN and a number it is the number, or NaN with `PropagateNan.ALL`."""
    return _extremum(_semantic, "max", x, y, propagate_nan)


@builtin
def clamp(x, min, max, propagate_nan=PropagateNan.NONE, _semantic=None):
    """x brought into min .. max; undefined if min > max. A NaN x gives min, or NaN with `PropagateNan.ALL`."""
    s = _semantic
    x, low, high = promote(s, *(to_tensor(s, v) for v in (x, min, max)))
    propagate = _propagates(propagate_nan)
    if not x.dtype.is_floating():
        suffix = "si" if x.dtype.is_int_signed() else "ui"
        return emit_binary(s, "min" + suffix, emit_binary(s, "max" + suffix, x, low), high)
    if x.dtype.is_fp8():
        return emit_cast(s, "fp_to_fp", clamp(*(cast(s, v, float32) for v in (x, low, high)), propagate_nan, _semantic=s), x.dtype)
    return tensor(s.builder.clampf(x.handle, low.handle, high.handle, propagate, x.type), x.type)
