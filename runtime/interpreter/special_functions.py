"""Functions that NumPy lacks, on float64 blocks: error functions, gamma, Bessel, and exactly rounded arithmetic.

Written for accuracy, not speed: the caller rounds the results to the type of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist

import numpy as np

_NORMAL = NormalDist()
_SQRT2 = math.sqrt(2.0)
_SQRT_PI = math.sqrt(math.pi)


def elementwise(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """Lift a function of Python floats to float64 blocks; an argument outside its domain gives NaN."""

    def guarded(*args: float) -> float:
        try:
            return function(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    lifted = np.frompyfunc(guarded, function.__code__.co_argcount if hasattr(function, "__code__") else 1, 1)
    return lambda *args: np.asarray(lifted(*args)).astype(np.float64)


erf = elementwise(math.erf)
erfc = elementwise(math.erfc)


def _tgamma(x: float) -> float:
    if math.isinf(x) or (x == math.floor(x) and x <= 0):
        return math.copysign(math.inf, x) if x == 0 else (x if x > 0 else math.nan)
    return math.inf if x > 171.7 else math.gamma(x)


def _lgamma(x: float) -> float:
    return math.inf if math.isinf(x) or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


def _erfinv(y: float) -> float:
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y == 0:
        return y
    x = _NORMAL.inv_cdf((1 + y) / 2) / _SQRT2 if abs(y) < 0.9 else math.copysign(_erfcinv(1 - abs(y)), y)
    for _ in range(2):
        x -= (math.erf(x) - y) * _SQRT_PI / 2 * math.exp(x * x)
    return x


def _erfcinv(y: float) -> float:
    if y in (0, 2):
        return math.inf if y == 0 else -math.inf
    if not 0 < y < 2:
        return math.nan
    x = -_NORMAL.inv_cdf(y / 2) / _SQRT2
    for _ in range(2):
        slope = 2 / _SQRT_PI * math.exp(-x * x)
        if slope:
            x += (math.erfc(x) - y) / slope
    return x


def _erfcx(x: float) -> float:
    if x < 25:
        return math.inf if x < -26.7 else math.exp(x * x) * math.erfc(x)
    inverse = 1 / (x * x)
    return (1 - inverse / 2 * (1 - inverse * 1.5 * (1 - inverse * 2.5))) / (x * _SQRT_PI)


def _normcdfinv(p: float) -> float:
    if p in (0, 1):
        return -math.inf if p == 0 else math.inf
    return _NORMAL.inv_cdf(p)


def _ilogb(x: float) -> float:
    if x == 0 or math.isnan(x):
        return -(2.0**31)
    return 2.0**31 - 1 if math.isinf(x) else math.frexp(x)[1] - 1.0


def _round_half_away(x: float) -> float:
    return (
        x
        if not math.isfinite(x)
        else math.copysign(math.floor(abs(x) + 0.5 if abs(x) < 2**52 and abs(x) != 0.49999999999999994 else abs(x)), x)
    )


def _remainder(x: float, y: float) -> float:
    return math.nan if math.isinf(x) or y == 0 else math.remainder(x, y)


tgamma = elementwise(_tgamma)
lgamma = elementwise(_lgamma)
erfinv = elementwise(_erfinv)
erfcinv = elementwise(_erfcinv)
erfcx = elementwise(_erfcx)
normcdfinv = elementwise(_normcdfinv)
ilogb = elementwise(_ilogb)
round_half_away = elementwise(_round_half_away)
remainder = elementwise(_remainder)


def normcdf(x: np.ndarray) -> np.ndarray:
    """Distribution function of the standard normal distribution."""
    return erfc(-np.asarray(x, np.float64) / _SQRT2) / 2


def _bessel_j(n: int, x: float) -> float:
    # Bessel's integral over a whole period: the trapezoid rule converges exponentially once it resolves the oscillation.
    if math.isinf(x):
        return 0.0
    count = int(abs(x) + n) + 64
    angle = np.arange(count) * (2 * math.pi / count)
    return float(np.cos(n * angle - x * np.sin(angle)).mean())


def _bessel_y(n: int, x: float) -> float:
    if x <= 0 or math.isinf(x):
        return -math.inf if x == 0 else (math.nan if x < 0 else 0.0)
    nodes, weights = _GAUSS
    count = int((x + n) / 20) + 4
    edges = np.linspace(0, math.pi, count + 1)
    half = math.pi / count / 2
    angle = (edges[:-1, None] + half + half * nodes).ravel()
    oscillating = float((np.sin(x * np.sin(angle) - n * angle) * np.tile(weights, count)).sum()) * half
    # The tail dies out where x*sinh(t) passes 750 + n*t.
    end = math.asinh((800 + 40 * n) / x)
    edges = np.linspace(0, end, 41)
    half = end / 80
    t = (edges[:-1, None] + half + half * nodes).ravel()
    decay = -x * np.sinh(t)
    tail = float(((np.exp(n * t + decay) + (-1) ** n * np.exp(-n * t + decay)) * np.tile(weights, 40)).sum()) * half
    return (oscillating - tail) / math.pi


def _bessel_i(n: int, x: float) -> float:
    count = int(abs(x)) + 64
    angle = np.arange(count) * (2 * math.pi / count)
    return float((np.exp(x * np.cos(angle)) * np.cos(n * angle)).mean())


_GAUSS = np.polynomial.legendre.leggauss(24)


def bessel(kind: str, order: int) -> Callable[[np.ndarray], np.ndarray]:
    """Bessel function of the first ("j") or second ("y") kind, or modified of the first ("i"), of a whole order, for blocks."""
    function = {"j": _bessel_j, "y": _bessel_y, "i": _bessel_i}[kind]
    return elementwise(lambda x: math.nan if math.isnan(x) else function(order, x))


def bessel_of_order(kind: str, order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same with one order per element; negative orders are not defined by libdevice and give NaN."""
    function = {"j": _bessel_j, "y": _bessel_y}[kind]
    return elementwise(lambda n, v: math.nan if n < 0 or math.isnan(v) else function(int(n), v))(order, x)


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """`a * b + c` with one rounding, for blocks of one floating-point dtype."""
    dtype = a.dtype
    if dtype == np.float64:
        return exactly_rounded("fma", "rn", a, b, c)
    # Products of two fp32 or narrower numbers are exact in fp64. The error of the sum sets its last bit ("round to odd"), which makes
    # the second rounding, to a format with at least two bits less, come out as if it were the only one.
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    toward = np.where((error > 0) == (total > 0), bits + 1, bits - 1)
    return np.where(inexact, toward, bits).view(np.float64).astype(dtype)


_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
    "fma": lambda a, b, c: a * b + c,
}
_NEAREST: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": np.reciprocal,
    "fma": lambda a, b, c: a * b + c,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
}


def exactly_rounded(operation: str, mode: str, *args: np.ndarray) -> np.ndarray:
    """`operation` on fp32 or fp64 blocks with one rounding: "rn" (nearest even), "rz" (zero), "rd" (down) or "ru" (up).

    Operations: add, sub, mul, div, rcp, fma, sqrt, rsqrt.
    """
    dtype = args[0].dtype
    args = np.broadcast_arrays(*args)
    guess = np.asarray(_NEAREST[operation](*args), dtype)
    if mode == "rn" and operation not in ("fma", "rsqrt"):
        return guess
    out = guess.copy()
    for at in np.ndindex(guess.shape):
        values = [float(a[at]) for a in args]
        if all(map(math.isfinite, values)) and np.isfinite(guess[at]) and not (operation in ("rcp", "div") and values[-1] == 0):
            out[at] = _round_exact(operation, mode, values, guess[at], dtype.type)
    return out


def _round_exact(operation: str, mode: str, values: list[float], guess: np.floating, dtype: type) -> np.floating:
    """The exact result of `operation` rounded as `mode` says; `guess` is finite, and for roots within a few units of the result."""
    exact = [Fraction(v) for v in values]
    if operation in ("sqrt", "rsqrt"):
        target = exact[0] if operation == "sqrt" else 1 / exact[0] if exact[0] else Fraction(0)
        if target <= 0:
            return guess
        sign = lambda x: (lambda f: (f * f > target) - (f * f < target) if f >= 0 else -1)(Fraction(x))  # noqa: E731
    else:
        result = _EXACT[operation](*exact)
        if result == 0:
            return dtype(0) if operation == "fma" else guess
        guess = dtype(float(result))
        sign = lambda x: (Fraction(x) > result) - (Fraction(x) < result)  # noqa: E731
    below = guess
    while sign(float(below)) > 0:
        below = np.nextafter(below, dtype(-np.inf))
    if sign(float(below)) == 0:
        return below
    above = np.nextafter(below, dtype(np.inf))
    while np.isfinite(above) and sign(float(above)) < 0:
        below, above = above, np.nextafter(above, dtype(np.inf))
    if np.isfinite(above) and sign(float(above)) == 0:
        return above
    if mode == "rn":
        if not np.isfinite(above):
            return guess
        middle = sign((Fraction(float(below)) + Fraction(float(above))) / 2)
        even = below if int(np.asarray(below).view(np.int32 if dtype is np.float32 else np.int64)) & 1 == 0 else above
        return even if middle == 0 else (below if middle > 0 else above)
    down = mode == "rd" or (mode == "rz" and below >= 0)
    return below if down else above
