"""Types of values in random programs, and the rules of promotion as the language documents them (written anew, not taken from it)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DType:
    """An element type: `code` as in signatures, `kind` one of bool, int, uint, float, fp8."""

    code: str
    kind: str
    bits: int
    spelled: str

    @property
    def is_int(self) -> bool:
        """An integer of two or more bits."""
        return self.kind in ("int", "uint")

    @property
    def is_float(self) -> bool:
        """A float that has arithmetic."""
        return self.kind == "float"

    @property
    def low(self) -> int:
        """Smallest integer."""
        return -(2 ** (self.bits - 1)) if self.kind == "int" else 0

    @property
    def high(self) -> int:
        """Largest integer."""
        return 2 ** (self.bits - (self.kind == "int")) - 1


def _table() -> dict[str, DType]:
    rows = [DType("u1", "bool", 1, "tl.int1")]
    for bits in (8, 16, 32, 64):
        rows += [DType(f"i{bits}", "int", bits, f"tl.int{bits}"), DType(f"u{bits}", "uint", bits, f"tl.uint{bits}")]
    floats = {"fp16": "tl.float16", "bf16": "tl.bfloat16", "fp32": "tl.float32", "fp64": "tl.float64"}
    rows += [DType(code, "float", int(code[2:]), spelled) for code, spelled in floats.items()]
    for code, spelled in {"fp8e5": "tl.float8e5", "fp8e4nv": "tl.float8e4nv", "fp8e4b15": "tl.float8e4b15"}.items():
        rows.append(DType(code, "fp8", 8, spelled))
    return {row.code: row for row in rows}


DTYPES = _table()
BOOL, I32, U32, I64 = DTYPES["u1"], DTYPES["i32"], DTYPES["u32"], DTYPES["i64"]
FP16, BF16, FP32, FP64 = DTYPES["fp16"], DTYPES["bf16"], DTYPES["fp32"], DTYPES["fp64"]
INTEGERS = [t for t in DTYPES.values() if t.is_int]
FLOATS = [t for t in DTYPES.values() if t.is_float]
FP8S = [t for t in DTYPES.values() if t.kind == "fp8"]

# What holds the bits of an element in memory
STORAGE = {t.code: np.dtype(f"u{max(t.bits, 8) // 8}") for t in DTYPES.values()}
NUMPY = {t.code: np.dtype(f"{'i' if t.kind == 'int' else 'u'}{t.bits // 8}") for t in INTEGERS}
NUMPY |= {"u1": np.dtype("?"), "fp16": np.dtype("f2"), "fp32": np.dtype("f4"), "fp64": np.dtype("f8")}


@dataclass(frozen=True)
class Type:
    """Element type and shape; the shape () is a scalar."""

    dtype: DType
    shape: tuple[int, ...] = ()

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def of(self, dtype: DType) -> Type:
        """The same shape with another element type."""
        return Type(dtype, self.shape)


def promote(a: DType, b: DType, division: bool = False) -> DType:
    """The type in which two tensors are combined; `division` for / and %."""
    for wide in (FP64, FP32):
        if wide in (a, b):
            return wide
    if FP16 in (a, b):
        return FP32 if division else FP16
    if BF16 in (a, b):
        return BF16 if a is b and not division else FP32
    if (a.kind == "int") == (b.kind == "int"):
        return a if a.bits >= b.bits else b
    unsigned, signed = (a, b) if b.kind == "int" else (b, a)
    return unsigned if unsigned.bits >= signed.bits else signed


def promote_number(number: int | float, ty: DType, division: bool = False) -> DType:
    """The type in which a tensor of `ty` is combined with a Python number."""
    if isinstance(number, float) and not ty.is_float:
        return FP32
    if not isinstance(number, float) and ty.kind == "bool":
        return I32
    return FP32 if division and ty in (FP16, BF16) else ty


def sum_type(ty: DType) -> DType:
    """The element type of tl.sum and tl.cumsum."""
    if ty.kind in ("bool", "int", "uint") and ty.bits < 32:
        return U32 if ty.kind == "uint" else I32
    return ty


def extremum_type(ty: DType) -> DType:
    """The element type of tl.max and tl.min without indices."""
    return (FP32 if ty.is_float else I32) if ty.bits < 32 else ty


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common shape of two operands, None if there is none. Shapes of other ranks align on the right."""
    if not a or not b:
        return a or b
    if len(a) != len(b):
        return None
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        return None
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))
