"""The contents of arrays: made from a specification, held as bits, read as numbers."""

from __future__ import annotations

import numpy as np

import tilewright.language as tl
from tilewright.runtime.interpreter.float_formats import decode, encode

from .program import Array
from .types import DTYPES, NUMPY, STORAGE, DType

_LANGUAGE = {code: getattr(tl, ty.spelled.removeprefix("tl.")) for code, ty in DTYPES.items()}


class Typed:
    """A NumPy array of bits under a type of the language, as the interpreter takes it."""

    def __init__(self, base: np.ndarray, code: str):
        self.base = base
        self.dtype = _LANGUAGE[code]

    @property
    def __array_interface__(self) -> dict:
        return self.base.__array_interface__


def language_dtype(code: str):
    """`tl.float32` for "fp32"."""
    return _LANGUAGE[code]


def bits_of(values: np.ndarray, code: str) -> np.ndarray:
    """Numbers rounded to a type, as its bits."""
    if code in NUMPY:
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(NUMPY[code]).view(STORAGE[code])
    return encode(np.asarray(values, np.float32), code).view(STORAGE[code])


def numbers_of(bits: np.ndarray, code: str) -> np.ndarray:
    """The numbers that bits stand for: float64 for floats, else their own type."""
    if DTYPES[code].kind in ("float", "fp8"):
        with np.errstate(all="ignore"):
            return (bits.view(NUMPY[code]) if code in NUMPY else decode(bits, code)).astype(np.float64)
    return bits.view(np.uint8) if code == "u1" else bits.view(NUMPY[code])


def fill(array: Array) -> np.ndarray:
    """The bits of an array argument.

    Fills: "zero"; "small" (integers in -8 .. 8, floats around 1); "full" (all integers of the type); "special" (floats with infinities,
    NaN, signed zeros and extremes among them, integers with their extremes); "unit" (floats in -1 .. 1); "pattern" (what an output holds
    before the kernel runs).
    """
    rng = np.random.default_rng(array.seed)
    ty, n = DTYPES[array.dtype], array.size
    if array.fill == "zero":
        return np.zeros(n, STORAGE[array.dtype])
    if array.fill == "pattern":
        return np.resize(np.arange(1, 8, dtype=STORAGE[array.dtype]) % (2 if ty.kind == "bool" else 8), n)
    if ty.kind == "bool":
        return rng.integers(0, 2, n).astype(np.uint8)
    return _integers(rng, ty, n, array.fill) if ty.is_int else _floats(rng, ty, n, array.fill)


def _integers(rng: np.random.Generator, ty: DType, n: int, kind: str) -> np.ndarray:
    dtype = NUMPY[ty.code]
    if kind in ("small", "unit"):
        return rng.integers(max(ty.low, -8), 9, n).astype(dtype).view(STORAGE[ty.code])
    values = rng.integers(ty.low, ty.high, n, dtype=dtype, endpoint=True)
    if kind == "special":
        extremes = np.array([ty.low, ty.high, 0, 1, ty.high // 2], dtype)
        values = np.where(rng.random(n) < 0.2, extremes[rng.integers(0, len(extremes), n)], values)
    return values.view(STORAGE[ty.code])


_SPECIAL = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.0, -1.0, 448.0, -57344.0, 65504.0, 2.0**-14, 3e38])


def _floats(rng: np.random.Generator, ty: DType, n: int, kind: str) -> np.ndarray:
    values = rng.uniform(-1, 1, n) if kind == "unit" else rng.standard_normal(n) * 2
    if kind == "full":
        values = np.ldexp(values, rng.integers(-12, 12, n))
    if kind == "special":
        values = np.where(rng.random(n) < 0.15, _SPECIAL[rng.integers(0, len(_SPECIAL), n)], values)
    return bits_of(values, ty.code)
