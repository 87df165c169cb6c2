"""The 8-bit float formats, which LLVM does not have: their parameters, and the codes of constants."""

import math
from dataclasses import dataclass

from mlir import ir


@dataclass(frozen=True)
class Float8:
    """An 8-bit format: bits of the mantissa, exponent bias, the codes of the largest finite value and of NaN, whether -0 exists.

    `native` is its name in PTX, if PTX converts it. `infinity`: whether exponent 31 holds infinities and NaNs as in IEEE formats.
    """

    mantissa: int
    bias: int
    largest: int
    nan: int
    signed_zero: bool = True
    native: str = ""
    infinity: bool = False


E5M2 = Float8(2, 15, 0x7B, 0x7F, native="e5m2", infinity=True)
E4M3 = Float8(3, 7, 0x7E, 0x7F, native="e4m3")
E4B15 = Float8(3, 15, 0x7F, 0x7F)
FORMATS = {
    ir.Float8E5M2Type: E5M2,
    ir.Float8E4M3FNType: E4M3,
    ir.Float8E5M2FNUZType: Float8(2, 16, 0x7F, 0x80, signed_zero=False),
    ir.Float8E4M3FNUZType: Float8(3, 8, 0x7F, 0x80, signed_zero=False),
}


def float8_format(type: ir.Type) -> Float8 | None:
    """The 8-bit format of an element type; fp8e4b15 for i8, None for wider floats."""
    element = type.element_type if isinstance(type, ir.RankedTensorType) else type
    if isinstance(element, ir.IntegerType):
        return E4B15
    return next((format for kind, format in FORMATS.items() if isinstance(element, kind)), None)


def encode_constant(value: float, format: Float8) -> int:
    """The code of a value that `format` holds exactly."""
    if math.isnan(value):
        return format.nan
    sign = 0x80 if math.copysign(1.0, value) < 0 and (format.signed_zero or value) else 0
    if math.isinf(value):
        return sign | 0x7C
    if value == 0:
        return sign
    exponent = max(math.frexp(value)[1] - 1, 1 - format.bias)
    scaled = int(math.ldexp(abs(value), format.mantissa - exponent))  # integer significand; below 1 << mantissa in subnormals
    return sign | ((exponent + format.bias - 1 << format.mantissa) + scaled)
