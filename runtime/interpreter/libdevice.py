"""What the functions of CUDA's libdevice compute, for NumPy blocks: `lookup("__nv_tanhf")` gives a function of arrays.

Functions of fp32 are computed in fp64 and rounded once by the caller, which knows the result's type; fp64 ones are as good as NumPy
and Python's `math`. The rounding-mode functions (`__nv_fadd_rz`, …) are exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import special_functions as special

Function = Callable[..., np.ndarray]

# How fp32 and fp64 symbols are spelt: a root `x` is `__nv_xf` for fp32 and `__nv_x` for fp64.
_REAL: dict[str, Function] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": special.round_half_away,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "logb": lambda x: np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1.0, np.abs(x))),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "hypot": np.hypot,
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": lambda a, b, c: np.sqrt(a * a + b * b + c * c),
    "rnorm3d": lambda a, b, c: 1 / np.sqrt(a * a + b * b + c * c),
    "norm4d": lambda a, b, c, d: np.sqrt(a * a + b * b + c * c + d * d),
    "rnorm4d": lambda a, b, c, d: 1 / np.sqrt(a * a + b * b + c * c + d * d),
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "erfcinv": special.erfcinv,
    "normcdf": special.normcdf,
    "normcdfinv": special.normcdfinv,
    "tgamma": special.tgamma,
    "lgamma": special.lgamma,
    "j0": special.bessel("j", 0),
    "j1": special.bessel("j", 1),
    "y0": special.bessel("y", 0),
    "y1": special.bessel("y", 1),
    "jn": lambda n, x: special.bessel_of_order("j", n, x),
    "yn": lambda n, x: special.bessel_of_order("y", n, x),
    "cyl_bessel_i0": special.bessel("i", 0),
    "cyl_bessel_i1": special.bessel("i", 1),
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "fmod": np.fmod,
    "remainder": special.remainder,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)),
    "ldexp": np.ldexp,
    "scalbn": np.ldexp,
    "ilogb": special.ilogb,
    "llrint": np.rint,
    "llround": special.round_half_away,
}

# Computed in the operands' own type: the result depends on it.
_SAME_TYPE: dict[str, Function] = {
    "fabs": np.abs,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "fma": special.fused_multiply_add,
    "fmax": np.fmax,
    "fmin": np.fmin,
}

_FAST: dict[str, Function] = {
    "fast_sinf": np.sin,
    "fast_cosf": np.cos,
    "fast_tanf": np.tan,
    "fast_logf": np.log,
    "fast_log2f": np.log2,
    "fast_log10f": np.log10,
    "fast_expf": np.exp,
    "fast_exp10f": lambda x: np.power(10.0, x),
    "fast_powf": np.power,
    "fast_fdividef": np.divide,
    "saturatef": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
}


def _bits(x: np.ndarray) -> tuple[np.ndarray, int]:
    width = x.dtype.itemsize * 8
    return x.view(np.dtype(f"u{x.dtype.itemsize}")), width


def _popcount(x: np.ndarray) -> np.ndarray:
    bits, width = _bits(x)
    return sum(((bits >> bits.dtype.type(i)) & bits.dtype.type(1)).astype(np.int32) for i in range(width))


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    bits, width = _bits(x)
    for shift in (1, 2, 4, 8, 16, 32)[: width.bit_length() - 1]:
        bits = bits | (bits >> bits.dtype.type(shift))
    return width - _popcount(bits)


def _find_first_set(x: np.ndarray) -> np.ndarray:
    bits, _ = _bits(x)
    lowest = bits & (~bits + bits.dtype.type(1))
    return np.where(bits == 0, 0, _popcount(lowest - bits.dtype.type(1)) + 1)


def _reverse_bits(x: np.ndarray) -> np.ndarray:
    bits, width = _bits(x)
    one = bits.dtype.type(1)
    out = np.zeros_like(bits)
    for i in range(width):
        out |= ((bits >> bits.dtype.type(i)) & one) << bits.dtype.type(width - 1 - i)
    return out.view(x.dtype)


def _byte_permute(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    pair = a.view(np.uint32).astype(np.uint64) | (b.view(np.uint32).astype(np.uint64) << np.uint64(32))
    out = np.zeros(pair.shape, np.uint64)
    for i in range(4):
        pick = (selector.view(np.uint32) >> np.uint32(4 * i)) & np.uint32(7)
        out |= ((pair >> (pick.astype(np.uint64) * np.uint64(8))) & np.uint64(0xFF)) << np.uint64(8 * i)
    return out.astype(np.uint32).view(np.int32)


def high_half(a: np.ndarray, b: np.ndarray, signed: bool) -> np.ndarray:
    """High half of the double-width product of two 32- or 64-bit blocks."""
    if a.dtype.itemsize == 4:
        wide = np.int64 if signed else np.uint64
        a, b = (x.view(np.int32 if signed else np.uint32).astype(wide) for x in (a, b))
        return ((a * b) >> wide(32)).astype(np.int32 if signed else np.uint32)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    carry = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (carry >> half)
    if not signed:
        return high
    high = high - np.where(a.view(np.int64) < 0, ub, np.uint64(0)) - np.where(b.view(np.int64) < 0, ua, np.uint64(0))
    return high.view(np.int64)


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def _average(round_up: int, signed: bool) -> Function:
    def average(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = (x if signed else _unsigned(x) for x in (a, b))
        return (a.astype(np.int64) + b.astype(np.int64) + round_up) >> 1

    return average


def _multiply24(signed: bool) -> Function:
    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = (_unsigned(x).astype(np.int64) & 0xFFFFFF for x in (a, b))
        if signed:
            a, b = ((x ^ 0x800000) - 0x800000 for x in (a, b))
        return a * b

    return multiply


_INTEGER: dict[str, Function] = {
    "clz": _leading_zeros,
    "clzll": _leading_zeros,
    "popc": _popcount,
    "popcll": _popcount,
    "brev": _reverse_bits,
    "brevll": _reverse_bits,
    "ffs": _find_first_set,
    "ffsll": _find_first_set,
    "byte_perm": _byte_permute,
    "abs": np.abs,
    "llabs": np.abs,
    "mulhi": lambda a, b: high_half(a, b, True),
    "umulhi": lambda a, b: high_half(a, b, False),
    "mul64hi": lambda a, b: high_half(a, b, True),
    "umul64hi": lambda a, b: high_half(a, b, False),
    "mul24": _multiply24(True),
    "umul24": _multiply24(False),
    "hadd": _average(0, True),
    "uhadd": _average(0, False),
    "rhadd": _average(1, True),
    "urhadd": _average(1, False),
    "sad": lambda a, b, c: np.abs(a.astype(np.int64) - b.astype(np.int64)) + _unsigned(c).astype(np.int64),
    "usad": lambda a, b, c: np.abs(_unsigned(a).astype(np.int64) - _unsigned(b).astype(np.int64)) + _unsigned(c).astype(np.int64),
    # Reinterpretations and predicates
    "int_as_float": lambda x: x.view(np.float32),
    "uint_as_float": lambda x: x.view(np.float32),
    "float_as_int": lambda x: x.view(np.int32),
    "float_as_uint": lambda x: x.view(np.int32),
    "longlong_as_double": lambda x: x.view(np.float64),
    "double_as_longlong": lambda x: x.view(np.int64),
    "hiloint2double": lambda h, lo: ((h.astype(np.int64) << 32) | _unsigned(lo).astype(np.int64)).view(np.float64),
    "double2loint": lambda x: x.view(np.int64) & 0xFFFFFFFF,
    "double2hiint": lambda x: x.view(np.int64) >> 32,
    "rcp64h": lambda x: ((1 / x).view(np.int64) >> 32 << 32).view(np.float64),
    "isnanf": np.isnan,
    "isnand": np.isnan,
    "isinff": np.isinf,
    "isinfd": np.isinf,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "signbitf": np.signbit,
    "signbitd": np.signbit,
}

_INTEGER_RANGE = {"int": (32, True), "uint": (32, False), "ll": (64, True), "ull": (64, False)}
_TO_WHOLE: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def _convert(source: str, target: str, mode: str) -> Function | None:
    """`__nv_<source>2<target>_<mode>`: between floats and integers, saturating; NaN gives 0."""
    if target in _INTEGER_RANGE and source in ("float", "double"):
        bits, signed = _INTEGER_RANGE[target]
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)

        def to_integer(x: np.ndarray) -> np.ndarray:
            whole = np.atleast_1d(_TO_WHOLE[mode](x.astype(np.float64)))
            inside = np.where((whole >= low) & (whole < float(high + 1)), whole, 0)
            out = inside.astype(np.int64 if signed else np.uint64)
            out[whole >= float(high + 1)] = high
            out[whole < low] = low
            return out.astype(f"{'i' if signed else 'u'}{bits // 8}").view(f"i{bits // 8}").reshape(np.shape(x))

        return to_integer
    if target in ("float", "double") and source in (*_INTEGER_RANGE, "double"):
        dtype = np.float32 if target == "float" else np.float64

        def to_float(x: np.ndarray) -> np.ndarray:
            x = x if source in ("int", "ll", "double") else _unsigned(x)
            flat = np.atleast_1d(x)
            out = flat.astype(dtype)
            if mode != "rn":
                for at, value in np.ndenumerate(flat):
                    out[at] = _directed(value.item(), out[at], mode, dtype)
            return out.reshape(np.shape(x))

        return to_float
    return None


def _directed(exact: int | float, nearest: np.floating, mode: str, dtype: type) -> np.floating:
    if not np.isfinite(exact) or (not np.isfinite(nearest) and mode == "rn"):
        return nearest
    rounded_up = nearest > exact if np.isinf(nearest) else type(exact)(nearest) > exact
    rounded_down = nearest < exact if np.isinf(nearest) else type(exact)(nearest) < exact
    down = mode == "rd" or (mode == "rz" and exact >= 0)
    if rounded_up and down:
        return np.nextafter(nearest, dtype(-np.inf))
    return np.nextafter(nearest, dtype(np.inf)) if rounded_down and not down else nearest


def lookup(symbol: str) -> Function | None:
    """The function behind a libdevice symbol (`__nv_…`), or None if it is not one.

    It takes the operands as blocks of the symbol's types; the result is to be cast to the declared result type.
    """
    name = symbol.removeprefix("__nv_")
    if name == symbol:
        return None
    if name in _INTEGER:
        return _INTEGER[name]
    if name in _FAST:
        return _in_double(_FAST[name])
    root = name.removesuffix("f")
    for candidate in dict.fromkeys((name, root)):
        if candidate in _SAME_TYPE:
            return _SAME_TYPE[candidate]
        if candidate in _REAL:
            return _in_double(_REAL[candidate])
    base, _, mode = name.rpartition("_")
    if mode in _TO_WHOLE:
        source, two, target = base.partition("2")
        if two:
            return _convert(source, target, mode)
        operation = {"fmaf": "fma"}.get(base) or (base if base == "fma" else base[1:])
        return lambda *args: special.exactly_rounded(operation, mode, *args)
    return None


def _in_double(function: Function) -> Function:
    def call(*args: np.ndarray) -> np.ndarray:
        return function(*(a.astype(np.float64) if a.dtype == np.float32 else a for a in args))

    return call
