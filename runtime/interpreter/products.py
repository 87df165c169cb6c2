"""Matrix products of the NumPy builder. Products of floats are summed in fp32 (fp64 for fp64), those of integers exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.language.dtypes import block_type

from .values import from_real, real_values, unsigned

_E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], np.float32)
_E2M1 = np.concatenate([_E2M1, -_E2M1])


class ProductMixin:
    """`dot` and `dot_scaled`."""

    def dot(
        self,
        a: np.ndarray,
        b: np.ndarray,
        acc: np.ndarray,
        a_ty: block_type,
        b_ty: block_type,
        ty: block_type,
        *,
        precision: str,
        max_imprecise: int,
    ) -> np.ndarray:
        if a_ty.scalar.is_int():
            # |sum| <= K * 2**16, exact in fp64, whose products BLAS computes
            a, b = ((unsigned(x) if t.scalar.is_int_unsigned() else x).astype(np.float64) for x, t in ((a, a_ty), (b, b_ty)))
            return (np.matmul(a, b).astype(np.int64) + acc).astype(np.int32)
        product = np.matmul(real_values(a, a_ty), real_values(b, b_ty))
        return from_real(product + real_values(acc, ty), ty)

    def dot_scaled(
        self,
        a: np.ndarray,
        a_scale: np.ndarray | None,
        a_format: str,
        b: np.ndarray,
        b_scale: np.ndarray | None,
        b_format: str,
        acc: np.ndarray,
        types: Sequence[block_type | None],
        ty: block_type,
        *,
        fast_math: bool,
        a_k_pack: bool,
        b_k_pack: bool,
    ) -> np.ndarray:
        a_ty, a_scale_ty, b_ty, b_scale_ty = types
        left = _unpack_e2m1(a, -1 if a_k_pack else -2) if a_format == "e2m1" else real_values(a, a_ty)
        right = _unpack_e2m1(b, -2 if b_k_pack else -1) if b_format == "e2m1" else real_values(b, b_ty)
        if a_scale is not None:
            left = left * _scales(a_scale, a_scale_ty, left.shape[-1])
        if b_scale is not None:
            right = right * np.swapaxes(_scales(b_scale, b_scale_ty, right.shape[-2]), -1, -2)
        return np.matmul(left, right) + acc


def _unpack_e2m1(packed: np.ndarray, axis: int) -> np.ndarray:
    """Two 4-bit values per byte along `axis`, the lower nibble first."""
    codes = unsigned(packed)
    pairs = np.stack((codes & 0xF, codes >> 4), axis=codes.ndim if axis == -1 else codes.ndim - 1)
    shape = list(codes.shape)
    shape[axis] *= 2
    return _E2M1[pairs].reshape(shape)


def _scales(scale: np.ndarray, ty: block_type, k: int) -> np.ndarray:
    """Scales [.., rows, K / group] as factors [.., rows, K]: bytes are powers of two (e8m0, 0xff is NaN), else fp8e4nv."""
    if ty.scalar.is_floating():
        factors = real_values(scale, ty)
    else:
        codes = unsigned(scale).astype(np.int32)
        factors = np.where(codes == 0xFF, np.float32(np.nan), np.ldexp(np.float32(1), codes - 127))
    return np.repeat(factors, k // scale.shape[-1], axis=-1)
