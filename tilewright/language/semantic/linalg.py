"""Matrix products."""

from __future__ import annotations

from typing import Any

from ..core import builtin, shown, tensor
from ..dtypes import bfloat16, block_type, dtype, float8e4nv, float8e5, float16, float32, float64, int8, int32, uint8
from .cast import bitcast, cast, check_supported, expect_dtype
from .session import Semantic
from .shape import reshape_to, zeros_like_type
from .values import expect_tensor

# smallest K of a product on NVIDIA, by the width of the operands in bits
_MIN_K = {8: 32, 16: 16, 32: 8, 64: 4}
_SCALED_FORMATS = {"e4m3": float8e4nv, "e5m2": float8e5, "bf16": bfloat16, "fp16": float16}


def _precision(s: Semantic, input_precision: Any, allow_tf32: Any) -> str:
    if allow_tf32 is not None:
        if input_precision is not None:
            raise ValueError("dot: only one of input_precision and allow_tf32 can be given; allow_tf32 is deprecated")
        return "tf32" if allow_tf32 else "ieee"
    if input_precision is None:
        return s.option("default_dot_input_precision")
    accepted = s.option("allowed_dot_input_precisions")
    if input_precision not in accepted:
        raise ValueError(f"input_precision must be one of {tuple(accepted)}, got {input_precision!r}")
    return input_precision


def _check_shapes(s: Semantic, a: tensor, b: tensor) -> None:
    a_shape, b_shape = a.type.shape, b.type.shape
    if len(a_shape) != len(b_shape) or len(a_shape) < 2:
        raise ValueError(f"dot needs two tensors of one rank, 2 or more, got {shown(a)} and {shown(b)}")
    if a_shape[:-2] != b_shape[:-2]:
        raise ValueError(f"dot: batch dimensions of {shown(a)} and {shown(b)} must be equal")
    if a_shape[-1] != b_shape[-2]:
        raise ValueError(
            f"First input shape ({list(a_shape)}) and second input shape {list(b_shape)} are not compatible for matmul "
            "(second index of first shape must be equal to first index of second shape)"
        )
    min_k = _MIN_K.get(a.dtype.primitive_bitwidth, 1) if s.target.backend == "cuda" else 1
    if a_shape[-1] < min_k:
        raise ValueError(
            f"Input shapes should have M >= 1, N >= 1 and K >= {min_k} for operands of {a.dtype.primitive_bitwidth} bits, "
            f"got M = {a_shape[-2]}, N = {b_shape[-1]}, K = {a_shape[-1]}"
        )


def _check_operands(s: Semantic, a: tensor, b: tensor) -> tuple[tensor, tensor]:
    """Operands of types that can be multiplied."""
    for x in (a, b):
        check_supported(s, x.dtype)
    if a.dtype.is_fp8() and b.dtype.is_fp8():
        if "fp8e4b15" in (a.dtype.name, b.dtype.name):  # no matrix unit reads it
            if "fp8e4b15" in s.option("deprecated_fp8_dot_operand_dtypes"):
                s.warn("the use of fp8e4b15 is deprecated on this target; it is converted to fp16 for the dot")
            a, b = cast(s, a, float16), cast(s, b, float16)
        return a, b
    if a.dtype in (int8, uint8) and b.dtype in (int8, uint8):
        return a, b
    if a.dtype is not b.dtype:
        raise ValueError(f"Both operands must be same dtype. Got {a.dtype} and {b.dtype}; cast one of them")
    if a.dtype not in (float16, bfloat16, float32, float64):
        raise ValueError(f"dot does not support {a.dtype}; accepted: int8, uint8, fp16, bf16, fp32, fp64, fp8 types")
    return a, b


def _result_type(a: dtype, acc: tensor | None, out_dtype: Any) -> dtype:
    """Element type of the product, checked against the accumulator's."""
    natural = int32 if a.is_int() else float64 if a is float64 else float32
    if out_dtype is None:
        wanted = acc.dtype if acc is not None else natural
    else:
        wanted = expect_dtype(out_dtype, "out_dtype")
    if wanted is bfloat16:
        raise ValueError("out_dtype=bfloat16 is unsupported. Please use out_dtype=float32 and cast the result to bfloat16")
    accepted = (float32, float16) if a is float16 or a.is_fp8() else (natural,)
    if wanted not in accepted:
        if acc is not None and acc.dtype is wanted or natural is float32:
            raise ValueError(f"dot of {a} operands gives {' or '.join(t.name for t in accepted)}, not {wanted}")
        wanted = natural  # releases with a default of float32 took it for what the operands give
    return wanted


@builtin
def dot(
    input,
    other,
    acc=None,
    input_precision=None,
    allow_tf32=None,
    max_num_imprecise_acc=None,
    out_dtype=None,
    _semantic=None,
):
    """Matrix product input[.., M, K] @ other[.., K, N] + acc, of rank 2 or more (leading dimensions are batches).

    Operands are int8/uint8 (result int32), fp16 (fp32, or fp16 by `out_dtype`), bf16, fp32 (fp32), fp64 (fp64) or any two fp8 types (fp32,
    fp16). `input_precision` says how fp32 operands are multiplied: "tf32", "tf32x3", "ieee", "bf16x3", "bf16x6". `max_num_imprecise_acc`:
    how many fp8 products may be summed at reduced precision."""
    s = _semantic
    a, b = expect_tensor(input, "input"), expect_tensor(other, "other")
    precision = _precision(s, input_precision, allow_tf32)
    _check_shapes(s, a, b)
    a, b = _check_operands(s, a, b)
    acc = None if acc is None else expect_tensor(acc, "acc")
    element = _result_type(a.dtype, acc, out_dtype)
    batch = a.type.shape[:-2]
    m, k, n = a.type.shape[-2], a.type.shape[-1], b.type.shape[-1]
    out_shape = (*batch, m, n)
    if acc is None:
        acc = zeros_like_type(s, block_type(element, out_shape))
    elif acc.type is not block_type(element, out_shape):
        raise ValueError(f"dot: acc must be {element}{list(out_shape)}, got {shown(acc)}")
    if len(batch) > 1:
        count = a.type.numel // (m * k)
        a, b, acc = (reshape_to(s, x, (count, *x.type.shape[-2:])) for x in (a, b, acc))
    if max_num_imprecise_acc is None:
        max_num_imprecise_acc = s.option("max_num_imprecise_acc_default") if a.dtype.is_fp8() else 0
    elif a.dtype.is_fp8() and max_num_imprecise_acc > k:
        raise ValueError(f"max_num_imprecise_acc ({max_num_imprecise_acc}) must be <= K ({k})")
    handle = s.builder.dot(
        a.handle, b.handle, acc.handle, a.type, b.type, acc.type, precision=precision, max_imprecise=int(max_num_imprecise_acc)
    )
    return reshape_to(s, tensor(handle, acc.type), out_shape)


def _scaled_operand(s: Semantic, x: Any, fmt: Any, what: str) -> tensor:
    x = expect_tensor(x, what)
    if fmt == "e2m1":
        if x.dtype not in (uint8, int8):
            raise ValueError(f"dot_scaled: {what} of format e2m1 must be packed in uint8, got {x.dtype}")
        return cast(s, x, uint8)
    if fmt not in _SCALED_FORMATS:
        raise ValueError(f"dot_scaled: format {fmt!r} of {what} not supported; accepted: e2m1, {', '.join(_SCALED_FORMATS)}")
    ty = _SCALED_FORMATS[fmt]
    if x.dtype is ty:
        return x
    if x.dtype.primitive_bitwidth != ty.primitive_bitwidth or not x.dtype.is_int():
        raise ValueError(f"dot_scaled: {what} of format {fmt} must be {ty} or an integer of its bits, got {x.dtype}")
    return bitcast(s, x, ty)


def _scale(x: Any, rows: int, k: int, batch: tuple[int, ...], what: str) -> tensor | None:
    """The scales, one per 16 or 32 elements along K: [.., rows, K / group]."""
    if x is None:
        return None
    x = expect_tensor(x, what)
    if x.dtype not in (uint8, int8, float8e4nv):
        raise ValueError(f"dot_scaled: {what} must be uint8 (e8m0) or fp8e4nv, got {x.dtype}")
    accepted = [(*batch, rows, k // group) for group in (32, 16)]
    if x.type.shape not in accepted:
        raise ValueError(f"dot_scaled: {what} must have shape {' or '.join(str(list(a)) for a in accepted)}, got {shown(x)}")
    return x


@builtin
def dot_scaled(
    lhs,
    lhs_scale,
    lhs_format,
    rhs,
    rhs_scale,
    rhs_format,
    acc=None,
    fast_math=False,
    lhs_k_pack=True,
    rhs_k_pack=True,
    out_dtype=float32,
    _semantic=None,
):
    """Product of microscaled matrices: (lhs * lhs_scale)[M, K] @ (rhs * rhs_scale)[K, N] + acc in fp32.

    Formats: "e2m1" (two values in a uint8, the lower one in the lower bits, packed along K unless `*_k_pack` is False), "e4m3", "e5m2",
    "bf16", "fp16". Scales are e8m0 in uint8 (one per 32 elements of K) or fp8e4nv (one per 16), of shapes [M, K / group] and
    [N, K / group]; None means 1."""
    s = _semantic
    a, b = _scaled_operand(s, lhs, lhs_format, "lhs"), _scaled_operand(s, rhs, rhs_format, "rhs")
    rank = len(a.type.shape)
    if rank != len(b.type.shape) or rank not in (2, 3):
        raise ValueError(f"dot_scaled needs two tensors of rank 2 or 3, got {shown(a)} and {shown(b)}")
    for packed, fmt, what in ((lhs_k_pack, lhs_format, "lhs_k_pack"), (rhs_k_pack, rhs_format, "rhs_k_pack")):
        if not packed and fmt != "e2m1":
            raise ValueError(f"dot_scaled: {what}=False is for format e2m1 only, got {fmt}")
    a_k, a_m = (2 if lhs_format == "e2m1" and lhs_k_pack else 1), (2 if lhs_format == "e2m1" and not lhs_k_pack else 1)
    b_k, b_n = (2 if rhs_format == "e2m1" and rhs_k_pack else 1), (2 if rhs_format == "e2m1" and not rhs_k_pack else 1)
    batch = a.type.shape[:-2]
    m, k = a.type.shape[-2] * a_m, a.type.shape[-1] * a_k
    k_other, n = b.type.shape[-2] * b_k, b.type.shape[-1] * b_n
    if k != k_other or batch != b.type.shape[:-2]:
        raise ValueError(f"dot_scaled: {shown(a)} ({lhs_format}) and {shown(b)} ({rhs_format}) do not match: K is {k} and {k_other}")
    a_scale, b_scale = _scale(lhs_scale, m, k, batch, "lhs_scale"), _scale(rhs_scale, n, k, batch, "rhs_scale")
    if expect_dtype(out_dtype, "out_dtype") is not float32:
        raise ValueError(f"dot_scaled: out_dtype must be float32, got {out_dtype}")
    ty = block_type(float32, (*batch, m, n))
    if acc is None:
        acc = zeros_like_type(s, ty)
    elif expect_tensor(acc, "acc").type is not ty:
        raise ValueError(f"dot_scaled: acc must be fp32{list(ty.shape)}, got {shown(acc)}")
    types = [None if x is None else x.type for x in (a, a_scale, b, b_scale)]
    handle = s.builder.dot_scaled(
        a.handle,
        None if a_scale is None else a_scale.handle,
        lhs_format,
        b.handle,
        None if b_scale is None else b_scale.handle,
        rhs_format,
        acc.handle,
        types,
        ty,
        fast_math=bool(fast_math),
        a_k_pack=bool(lhs_k_pack),
        b_k_pack=bool(rhs_k_pack),
    )
    return tensor(handle, ty)
