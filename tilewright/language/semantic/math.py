"""Elementary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import builtin, tensor
from ..dtypes import dtype, float16, float32, float64, int8, int32, int64, uint32, uint64
from .arith import emit_binary, emit_unary
from .cast import bitcast, cast
from .promotion import binary_operands, promote
from .session import Semantic
from .values import constant, to_tensor


def _expect(x: tensor, accepted: tuple[dtype, ...]) -> tensor:
    if x.dtype not in accepted:
        raise ValueError(f"Expected dtype {[ty.name for ty in accepted]} but got {x.dtype}")
    return x


def _function(name: str, doc: str, accepted: tuple[dtype, ...] = (float32, float64)) -> Callable[..., tensor]:
    def function(x, _semantic=None):
        return emit_unary(_semantic, name, _expect(to_tensor(_semantic, x), accepted))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}, elementwise; {' or '.join(ty.name for ty in accepted)}."
    return builtin(function)


exp = _function("exp", "e to the power x")
exp2 = _function("exp2", "2 to the power x")
log = _function("log", "Natural logarithm")
log2 = _function("log2", "Logarithm to base 2")
sin = _function("sin", "Sine of x in radians")
cos = _function("cos", "Cosine of x in radians")
sqrt = _function("sqrt", "Square root, fast")
sqrt_rn = _function("sqrt_rn", "Square root, rounded to nearest even", (float32,))
rsqrt = _function("rsqrt", "Inverse square root")
erf = _function("erf", "Error function")
floor = _function("floor", "Largest integer that is not larger")
ceil = _function("ceil", "Smallest integer that is not smaller")


@builtin
def abs(x, _semantic=None):
    """Absolute value, of the type of x."""
    s = _semantic
    x = to_tensor(s, x)
    if x.dtype.is_fp8():
        if x.dtype.name in ("fp8e4b8", "fp8e5b16"):  # their NaN is the code of a negative zero: the sign bit is not only a sign
            return cast(s, emit_unary(s, "absf", cast(s, x, float16)), x.dtype)
        bits = bitcast(s, x, int8)
        return bitcast(s, emit_binary(s, "andi", bits, constant(s, 0x7F, bits.type)), x.dtype)
    if x.dtype.is_floating():
        return emit_unary(s, "absf", x)
    if x.dtype.is_int_signed():
        return emit_unary(s, "absi", x)
    if x.dtype.is_int_unsigned():
        return x
    raise ValueError(f"abs is not defined on {x.dtype}; integers and floats have it")


@builtin
def umulhi(x, y, _semantic=None):
    """The upper half of the bits of the product of two 32- or 64-bit integers, taken as unsigned."""
    a, b = binary_operands(_semantic, to_tensor(_semantic, x), to_tensor(_semantic, y))
    _expect(a, (int32, int64, uint32, uint64))
    return emit_binary(_semantic, "mulhiui", a, b)


def _floats(s: Semantic, *xs: Any) -> list[tensor]:
    operands = promote(s, *(to_tensor(s, x) for x in xs))
    if not operands[0].dtype.is_floating():
        raise TypeError(f"floats are needed, got {', '.join(str(to_tensor(s, x).dtype) for x in xs)}")
    return operands


@builtin
def fdiv(x, y, ieee_rounding=False, approx=False, _semantic=None):
    """x / y on floats. `ieee_rounding` asks for the nearest result (fp32), `approx` for the fastest."""
    if ieee_rounding and approx:
        raise ValueError("fdiv: ieee_rounding and approx exclude each other")
    a, b = _floats(_semantic, x, y)
    if ieee_rounding and a.dtype is float32:
        return emit_binary(_semantic, "div_rn", a, b)
    return emit_binary(_semantic, "divf", a, b)


@builtin
def div_rn(x, y, _semantic=None):
    """x / y on fp32, rounded to nearest even as IEEE 754 has it."""
    a, b = _floats(_semantic, x, y)
    _expect(a, (float32,))
    return emit_binary(_semantic, "div_rn", a, b)


@builtin
def fma(x, y, z, _semantic=None):
    """x * y + z with one rounding."""
    a, b, c = _floats(_semantic, x, y, z)
    if a.dtype.is_fp8():
        return cast(_semantic, fma(*(cast(_semantic, v, float32) for v in (a, b, c)), _semantic=_semantic), a.dtype)
    return tensor(_semantic.builder.fma(a.handle, b.handle, c.handle, a.type), a.type)
