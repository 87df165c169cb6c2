"""Bit-exact conversions between the floating-point formats of the language, vectorized in NumPy.

A block of a format is held the way memory holds it: fp64, fp32 and fp16 as the NumPy floats of that width, bf16 as uint16 and
every fp8 kind as uint8 (the *storage* dtype). Arithmetic on the latter goes through `decode` (exact) and `encode` (one rounding).

Rules of a narrowing conversion, per destination:
  fp16, bf16       overflow gives infinity with rtne and the largest finite value with rtz; NaN gives a quiet NaN.
  every fp8 kind   saturates: overflow and infinity give the largest finite value of the same sign.
  fp8e5, fp8e4nv   NaN gives 0x7f.
  fp8e5b16, fp8e4b8 (the "fnuz" kinds)   NaN gives 0x80, their only NaN; there is no negative zero.
  fp8e4b15         has no NaN: NaN gives the largest finite value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class FloatFormat:
    """A format narrower than fp32: one sign bit, then the exponent, then `mantissa_bits`.

    `nan` and `max_finite` are codes (bit patterns without regard to sign); `infinity` is None where the format has none.
    """

    name: str
    bits: int
    mantissa_bits: int
    bias: int
    max_finite: int
    infinity: int | None
    nan: int
    saturates: bool
    signed_zero: bool = True

    @property
    def storage(self) -> np.dtype:
        """Unsigned integer dtype that holds one code."""
        return np.dtype(np.uint8 if self.bits == 8 else np.uint16)

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)


FORMATS: dict[str, FloatFormat] = {
    f.name: f
    for f in (
        FloatFormat("fp16", 16, 10, 15, max_finite=0x7BFF, infinity=0x7C00, nan=0x7FFF, saturates=False),
        FloatFormat("bf16", 16, 7, 127, max_finite=0x7F7F, infinity=0x7F80, nan=0x7FFF, saturates=False),
        FloatFormat("fp8e5", 8, 2, 15, max_finite=0x7B, infinity=0x7C, nan=0x7F, saturates=True),
        FloatFormat("fp8e5b16", 8, 2, 16, max_finite=0x7F, infinity=None, nan=0x80, saturates=True, signed_zero=False),
        FloatFormat("fp8e4nv", 8, 3, 7, max_finite=0x7E, infinity=None, nan=0x7F, saturates=True),
        FloatFormat("fp8e4b8", 8, 3, 8, max_finite=0x7F, infinity=None, nan=0x80, saturates=True, signed_zero=False),
        FloatFormat("fp8e4b15", 8, 3, 15, max_finite=0x7F, infinity=None, nan=0x7F, saturates=True),
    )
}

NATIVE: dict[str, np.dtype] = {"fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}


def storage_dtype(name: str) -> np.dtype:
    """NumPy dtype that holds blocks of the floating-point format `name` ("fp32", "bf16", "fp8e5", …)."""
    return NATIVE[name] if name in NATIVE else FORMATS[name].storage


@cache
def _decode_table(name: str) -> np.ndarray:
    """fp32 value of each of the 256 codes of an fp8 format."""
    fmt = FORMATS[name]
    codes = np.arange(256, dtype=np.int64)
    magnitude = codes & 0x7F
    exponent = magnitude >> fmt.mantissa_bits
    fraction = magnitude & ((1 << fmt.mantissa_bits) - 1)
    significand = np.where(exponent > 0, fraction + (1 << fmt.mantissa_bits), fraction)
    value = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - fmt.bias - fmt.mantissa_bits)
    if fmt.signed_zero:
        if fmt.infinity is not None:
            value[magnitude == fmt.infinity] = np.inf
        value[magnitude > (fmt.max_finite if fmt.infinity is None else fmt.infinity)] = np.nan
    value = np.copysign(value, np.where(codes >= 0x80, -1.0, 1.0))
    if not fmt.signed_zero:
        value[fmt.nan] = np.nan
    table = value.astype(np.float32)
    table.setflags(write=False)
    return table


def decode(data: np.ndarray, name: str) -> np.ndarray:
    """Values of a block in storage form: float64 for fp64, else float32. Exact."""
    if name in ("fp32", "fp64"):
        return data
    if name == "bf16":
        return np.left_shift(data, 16, dtype=np.uint32).view(np.float32)
    if name == "fp16":
        return data.astype(np.float32)
    return _decode_table(name)[data]


def encode(values: np.ndarray, name: str, rounding: str = "rtne") -> np.ndarray:
    """Round float32 or float64 `values` once to format `name`; returns them in storage form.

    `rounding` is "rtne" (nearest, ties to even) or "rtz" (towards zero).
    """
    values = np.asarray(values)
    if name == "fp64":
        return _astype(values, np.float64)
    if name == "fp32":
        return _double_to_single_rtz(values) if rounding == "rtz" and values.dtype == np.float64 else _astype(values, np.float32)
    if name == "fp16" and rounding == "rtne":
        return _astype(values, np.float16)
    if name == "bf16" and rounding == "rtne" and values.dtype == np.float32:
        return _encode_bf16(values)
    codes = _encode_bits(values, FORMATS[name], rounding == "rtz")
    return codes.view(np.float16) if name == "fp16" else codes


def convert(data: np.ndarray, source: str, target: str, rounding: str = "rtne") -> np.ndarray:
    """Convert a block in storage form from format `source` to format `target`, with one rounding."""
    if source == target:
        return data
    if target in FORMATS and source in FORMATS:
        bits = data.view(np.uint16) if source == "fp16" else data
        return _conversion_table(source, target, rounding)[bits]
    return encode(decode(data, source), target, rounding)


@cache
def _conversion_table(source: str, target: str, rounding: str) -> np.ndarray:
    """Result of the conversion for every code of a format of 8 or 16 bits."""
    fmt = FORMATS[source]
    codes = np.arange(1 << fmt.bits, dtype=fmt.storage)
    return encode(decode(codes.view(storage_dtype(source)), source), target, rounding)


def _astype(values: np.ndarray, dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def _double_to_single_rtz(values: np.ndarray) -> np.ndarray:
    nearest = _astype(values, np.float32)
    away = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(away, np.nextafter(nearest, np.float32(0)), nearest)


def _encode_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.view(np.uint32)
    codes = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    unordered = np.isnan(values)
    return np.where(unordered, np.uint16(FORMATS["bf16"].nan), codes) if unordered.any() else codes


def _encode_bits(values: np.ndarray, fmt: FloatFormat, toward_zero: bool) -> np.ndarray:
    """Round fp32 or fp64 to `fmt` with integer arithmetic on the bits."""
    double = values.dtype == np.float64
    mantissa, bias, width = (52, 1023, 64) if double else (23, 127, 32)
    bits = values.view(np.uint64 if double else np.uint32).astype(np.int64)
    negative = bits >> (width - 1) != 0
    magnitude = bits & ((1 << (width - 1)) - 1)
    infinity = ((1 << (width - 1)) - 1) >> mantissa << mantissa

    drop = mantissa - fmt.mantissa_bits
    codes = _shift_right(magnitude - ((bias - fmt.bias) << mantissa), np.int64(drop), toward_zero)
    if bias != fmt.bias:
        # Below the smallest normal number the significand, leading one included, moves right by one more per missing exponent step.
        exponent = (magnitude >> mantissa) - bias + fmt.bias
        subnormal = exponent < 1
        shift = np.where(subnormal, np.minimum(drop + 1 - exponent, mantissa + 2), drop)
        significand = (magnitude & ((1 << mantissa) - 1)) | (1 << mantissa)
        codes = np.where(subnormal, _shift_right(significand, shift, toward_zero), codes)

    if fmt.saturates:
        codes = np.minimum(codes, fmt.max_finite)
    elif toward_zero:
        codes = np.where(magnitude == infinity, fmt.infinity, np.minimum(codes, fmt.max_finite))
    else:
        codes = np.minimum(codes, fmt.infinity)
    signed = negative if fmt.signed_zero else negative & (codes != 0)
    codes = np.where(signed, codes | fmt.sign_bit, codes)
    return np.where(magnitude > infinity, fmt.nan, codes).astype(fmt.storage)


def _shift_right(value: np.ndarray, amount: np.ndarray, toward_zero: bool) -> np.ndarray:
    """`value >> amount`, rounded to nearest even unless `toward_zero`; `amount` is at least 1."""
    if toward_zero:
        return value >> amount
    return (value + ((np.int64(1) << (amount - 1)) - 1) + ((value >> amount) & 1)) >> amount
