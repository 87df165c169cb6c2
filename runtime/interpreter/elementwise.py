"""Arithmetic, comparisons and conversions of the NumPy builder."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.language.dtypes import dtype

from . import special_functions as special
from .float_formats import convert, encode
from .libdevice import high_half
from .values import Handle, Pointers, as_signed, from_real, numpy_dtype, real_values, unsigned

Function = Callable[..., np.ndarray]

_UNARY: dict[str, Function] = {
    "negf": np.negative,
    "absf": np.abs,
    "absi": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x.astype(np.float64)),
    "erf": special.erf,
    "floor": np.floor,
    "ceil": np.ceil,
}


def _divide_toward_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.floor_divide(a - np.fmod(a, b), b)


def _on_unsigned(function: Function) -> Function:
    return lambda a, b: as_signed(function(unsigned(a), unsigned(b)))


_BINARY: dict[str, Function] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": _divide_toward_zero,
    "divui": _on_unsigned(np.floor_divide),
    "remsi": np.fmod,
    "remui": _on_unsigned(np.remainder),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": _on_unsigned(np.right_shift),
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": _on_unsigned(np.minimum),
    "maxui": _on_unsigned(np.maximum),
    "mulhiui": lambda a, b: as_signed(high_half(np.asarray(a), np.asarray(b), signed=False)),
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "div_rn": np.divide,
    "remf": np.fmod,
    "minnumf": np.fmin,
    "maxnumf": np.fmax,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
}

# NumPy's + on booleans is "or"; int1 is arithmetic modulo 2
_BINARY_BOOL: dict[str, Function] = {"addi": np.logical_xor, "subi": np.logical_xor, "muli": np.logical_and, "divui": np.logical_and}

_COMPARE: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "oeq": np.equal,
    "une": np.not_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
}
_COMPARE_UNSIGNED: dict[str, Function] = {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}


def saturating_integer(values: np.ndarray, source_bits: int, bits: int, signed: bool) -> np.ndarray:
    """Whole float64 values as `bits`-wide integers in canonical (signed) form, as the instruction `cvt` converts them from floats of
    `source_bits`: clamped to the range; NaN gives 0, or just the highest bit if either side has 64 bits."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = np.asarray(values)
    inside = (values >= low) & (values < float(high + 1))
    wide = np.where(inside, values, 0).astype(np.int64 if signed else np.uint64)
    wide = np.where(values >= float(high + 1), wide.dtype.type(high), np.where(values < low, wide.dtype.type(low), wide))
    whole = wide.astype(f"{'i' if signed else 'u'}{bits // 8}").view(f"i{bits // 8}")
    return np.where(np.isnan(values), np.iinfo(whole.dtype).min, whole) if 64 in (source_bits, bits) else whole


class ElementwiseMixin:
    """`unary`, `binary`, `compare`, `select`, `fma`, `clampf` and `cast`."""

    def unary(self, kind: str, a: np.ndarray, ty: dtype) -> np.ndarray:
        function = _UNARY[kind]
        if kind == "absi":
            return function(a)
        if ty.scalar.primitive_bitwidth >= 32:
            return np.asarray(function(a), dtype=a.dtype)
        return from_real(function(real_values(a, ty)), ty)

    def binary(self, kind: str, a: np.ndarray, b: np.ndarray, ty: dtype) -> np.ndarray:
        if ty.scalar.name == "bf16":
            return from_real(_BINARY[kind](real_values(a, ty), real_values(b, ty)), ty)
        if a.dtype == np.bool_ and kind in _BINARY_BOOL:
            return _BINARY_BOOL[kind](a, b)
        return _BINARY[kind](a, b)

    def compare(self, predicate: str, a: np.ndarray, b: np.ndarray, ty: dtype) -> np.ndarray:
        if predicate in _COMPARE_UNSIGNED:
            return _COMPARE_UNSIGNED[predicate](unsigned(a), unsigned(b))
        if ty.scalar.name == "bf16":
            a, b = real_values(a, ty), real_values(b, ty)
        return _COMPARE[predicate](a, b)

    def select(self, condition: np.ndarray, a: Handle, b: Handle, ty: dtype) -> Handle:
        if type(a) is Pointers:
            return Pointers(np.where(condition, a.address, b.address), a.base if a.base is b.base else None)
        return np.where(condition, a, b)

    def fma(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, ty: dtype) -> np.ndarray:
        if ty.scalar.name != "bf16":
            return special.fused_multiply_add(a, b, c)
        a, b, c = (real_values(x, ty).astype(np.float64) for x in (a, b, c))
        return from_real(a * b + c, ty)

    def clampf(self, x: np.ndarray, low: np.ndarray, high: np.ndarray, propagate_nan: bool, ty: dtype) -> np.ndarray:
        suffix = "imumf" if propagate_nan else "numf"
        return self.binary("min" + suffix, self.binary("max" + suffix, x, low, ty), high, ty)

    def cast(self, kind: str, a: Handle, source: dtype, ty: dtype, rounding: str | None = None) -> Handle:
        return _CASTS[kind](a, source.scalar, ty.scalar, rounding)


def _truncate(a, source, target, rounding):
    return (a & 1).astype(np.bool_) if target.is_bool() else a.astype(numpy_dtype(target))


def _sign_extend(a, source, target, rounding):
    return -a.astype(numpy_dtype(target)) if a.dtype == np.bool_ else a.astype(numpy_dtype(target))


def _zero_extend(a, source, target, rounding):
    return unsigned(a).astype(numpy_dtype(target))


def _to_float(a: np.ndarray, target: dtype) -> np.ndarray:
    # Through fp64, exact for 32 bits, except where NumPy rounds once by itself.
    if target.primitive_bitwidth >= 32:
        return a.astype(numpy_dtype(target))
    return encode(a.astype(np.float64), target.name)


def _to_integer(a: np.ndarray, source: dtype, target: dtype, signed: bool) -> np.ndarray:
    # As cvt.rzi does: saturate to at least 16 bits, then keep the low ones.
    whole = np.trunc(real_values(a, source).astype(np.float64))
    return saturating_integer(whole, source.scalar.primitive_bitwidth, max(target.int_bitwidth, 16), signed).astype(numpy_dtype(target))


def _bitcast(a, source, target, rounding):
    return a if type(a) is Pointers else a.view(numpy_dtype(target))


_CASTS: dict[str, Callable] = {
    "trunci": _truncate,
    "extsi": _sign_extend,
    "extui": _zero_extend,
    "sitofp": lambda a, source, target, rounding: _to_float(a, target),
    "uitofp": lambda a, source, target, rounding: _to_float(unsigned(a), target),
    "fptosi": lambda a, source, target, rounding: _to_integer(a, source, target, True),
    "fptoui": lambda a, source, target, rounding: _to_integer(a, source, target, False),
    "fp_to_fp": lambda a, source, target, rounding: convert(a, source.name, target.name, rounding or "rtne"),
    "bitcast": _bitcast,
    "ptr_to_int": lambda a, source, target, rounding: a.address,
    "int_to_ptr": lambda a, source, target, rounding: Pointers(a, None),
}
