"""Standard functions: what the language offers on top of its operations, written with them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from .core import active, builtin, shown, tensor
from .dtypes import bfloat16, dtype, float32, int32, uint32
from .semantic import arith
from .semantic.cast import cast as cast_tensor
from .semantic.cast import expect_dtype
from .semantic.math import exp, fdiv
from .semantic.regions import associative_scan, commutative, reduce
from .semantic.shape import arange, axis_argument, broadcast_to_, expand_dims, full, join, reshape
from .semantic.values import expect_tensor


def _log2(n: int) -> int:
    """Exponent of a power of two."""
    return int(getattr(n, "value", n)).bit_length() - 1


def _to(x: tensor, ty: dtype | None) -> tensor:
    return x if ty is None else cast_tensor(active(), x, ty)


# ---- creation and shape -----------------------------------------------------------------------------------------------------


@builtin
def zeros(shape, dtype):
    """A tensor of `shape` filled with 0."""
    return full(shape, 0, dtype)


@builtin
def zeros_like(input):
    """Zeros of the shape and type of `input`."""
    return full(input.type.shape, 0, input.dtype)


@builtin
def ravel(x, can_reorder=False):
    """The elements as a tensor of rank 1."""
    return reshape(x, (x.type.numel if x.type.is_block() else 1,), can_reorder=can_reorder)


@builtin
def squeeze(x, dim):
    """Remove the dimension `dim`, which has size 1."""
    shape = x.type.shape
    dim = axis_argument(dim, len(shape), "dim")
    if shape[dim] != 1:
        raise ValueError(f"squeeze: dimension {dim} of {shown(x)} must have size 1")
    return reshape(x, shape[:dim] + shape[dim + 1 :])


@builtin
def unsqueeze(x, dim):
    """Insert a dimension of size 1 at `dim`."""
    return expand_dims(x, dim)


@builtin
def interleave(a, b):
    """The elements of a and b in turn along the last dimension; two scalars give shape [2]."""
    joined = join(a, b)
    shape = joined.type.shape
    return joined if len(shape) == 1 else reshape(joined, (*shape[:-2], 2 * shape[-2]))


# ---- arithmetic -------------------------------------------------------------------------------------------------------------


@builtin
def cdiv(x, div):
    """x / div rounded up, for positive integers."""
    return (x + (div - 1)) // div


@builtin
def sigmoid(x):
    """1 / (1 + exp(-x)); fp32 or fp64."""
    return 1 / (1 + exp(-x))


@builtin
def softmax(x, dim=None, keep_dims=None, ieee_rounding=False):
    """exp(x - max) / sum along `dim` (default 0), of the shape of x. `keep_dims` has no effect."""
    dim = 0 if dim is None else dim
    numerator = exp(x - max(x, dim, keep_dims=True))
    return fdiv(numerator, sum(numerator, dim, keep_dims=True), ieee_rounding)


@builtin
def builtin_max(*args):
    """Python's `max` in a kernel: of constants a constant, else chained `tl.maximum`."""
    return _chained(args, builtins.max, arith.maximum)


@builtin
def builtin_min(*args):
    """Python's `min` in a kernel: of constants a constant, else chained `tl.minimum`."""
    return _chained(args, builtins.min, arith.minimum)


def _chained(args: tuple[Any, ...], on_constants: Callable, on_tensors: Callable) -> Any:
    items = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    if not items:
        raise TypeError("min and max need at least one value")
    if not any(isinstance(v, tensor) for v in items):
        return on_constants(items)
    result = items[0]
    for v in items[1:]:
        result = on_tensors(result, v)
    return result


@builtin
def swizzle2d(i, j, size_i, size_j, size_g):
    """Reorder the indices of a size_i x size_j grid so that groups of `size_g` rows are walked column by column; returns (i, j)."""
    linear = i * size_j + j
    per_group = size_g * size_j
    first = linear // per_group * size_g
    rows = builtin_min(size_i - first, size_g)
    inside = linear % per_group
    return first + inside % rows, inside // rows


# ---- reductions -------------------------------------------------------------------------------------------------------------


def _sum_combine(a, b):
    return a + b


def _prod_combine(a, b):
    return a * b


def _xor_combine(a, b):
    return a ^ b


def _or_combine(a, b):
    return a | b


def _elementwise_max(a, b):
    return arith.maximum(a, b)


def _elementwise_min(a, b):
    return arith.minimum(a, b)


def _select_pair(first, value1, index1, value2, index2):
    return arith.where(first, value1, value2), arith.where(first, index1, index2)


@commutative
def _argmax_combine_tie_break_left(value1, index1, value2, index2):
    first = (value1 > value2) | ((value1 == value2) & (index1 < index2))
    return _select_pair(first, value1, index1, value2, index2)


@commutative
def _argmax_combine_tie_break_fast(value1, index1, value2, index2):
    return _select_pair(value1 > value2, value1, index1, value2, index2)


@commutative
def _argmin_combine_tie_break_left(value1, index1, value2, index2):
    first = (value1 < value2) | ((value1 == value2) & (index1 < index2))
    return _select_pair(first, value1, index1, value2, index2)


@commutative
def _argmin_combine_tie_break_fast(value1, index1, value2, index2):
    return _select_pair(value1 < value2, value1, index1, value2, index2)


def _sum_type(ty: dtype, wanted: Any) -> dtype:
    """The type of a sum: `wanted`, else integers of less than 32 bits become 32 bits wide, so that counts do not wrap; int1 is unsigned."""
    if wanted is not None:
        return expect_dtype(wanted, "dtype")
    if ty.is_int() and ty.int_bitwidth < 32:
        return int32 if ty.is_int_signed() else uint32
    return ty


@builtin
def sum(input, axis=None, keep_dims=False, dtype=None):
    """Sum along `axis` (None: of all). Integers narrower than 32 bits are summed in 32 bits, or in `dtype`."""
    input = expect_tensor(input, "input")
    return reduce(_to(input, _sum_type(input.dtype, dtype)), axis, _sum_combine, keep_dims)


def _integers(input: Any, what: str) -> tensor:
    input = expect_tensor(input, "input")
    if not input.dtype.is_int():
        raise ValueError(f"{what} only supported for integers, got {input.dtype}")
    return input


@builtin
def xor_sum(input, axis=None, keep_dims=False):
    """Exclusive or of integers along `axis` (None: of all)."""
    return reduce(_integers(input, "xor_sum"), axis, _xor_combine, keep_dims)


@builtin
def reduce_or(input, axis, keep_dims=False):
    """Inclusive or of integers along `axis` (None: of all)."""
    return reduce(_integers(input, "reduce_or"), axis, _or_combine, keep_dims)


def _with_indices(input: tensor, axis: int | None, combine: Callable, keep_dims: bool) -> tuple[tensor, tensor]:
    """Values and int32 indices along `axis`, of the flattened tensor if it is None."""
    shape = input.type.shape
    if axis is None:
        flat = reshape(input, (input.type.numel,))
        results = reduce((flat, arange(0, input.type.numel)), 0, combine)
        return tuple(reshape(r, (1,) * len(shape)) for r in results) if keep_dims else results
    axis = axis_argument(axis, len(shape))
    index = arange(0, shape[axis])
    if len(shape) > 1:
        index = broadcast_to_(expand_dims(index, tuple(d for d in builtins.range(len(shape)) if d != axis)), shape)
    return reduce((input, index), axis, combine, keep_dims)


def _extremum(input: Any, axis: Any, combine: Callable, keep_dims: bool) -> tensor:
    input = expect_tensor(input, "input")
    if input.dtype.primitive_bitwidth < 32:
        input = _to(input, float32 if input.dtype.is_floating() else int32)
    return reduce(input, axis, combine, keep_dims)


def _widened(input: Any) -> tensor:
    input = expect_tensor(input, "input")
    return _to(input, float32 if input.dtype is bfloat16 else None)


@builtin
def max(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """Largest element along `axis` (None: of all); NaN only if all are. 16-bit floats give fp32, narrow integers int32.

    `return_indices` returns (values, int32 indices); of equal values the leftmost, unless `return_indices_tie_break_left` is False."""
    if return_indices:
        combine = _argmax_combine_tie_break_left if return_indices_tie_break_left else _argmax_combine_tie_break_fast
        return _with_indices(_widened(input), axis, combine, keep_dims)
    return _extremum(input, axis, _elementwise_max, keep_dims)


@builtin
def min(input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False):
    """Smallest element along `axis` (None: of all); otherwise like `max`."""
    if return_indices:
        combine = _argmin_combine_tie_break_left if return_indices_tie_break_left else _argmin_combine_tie_break_fast
        return _with_indices(_widened(input), axis, combine, keep_dims)
    return _extremum(input, axis, _elementwise_min, keep_dims)


@builtin
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    """int32 index of the largest element along `axis`."""
    return max(input, axis, True, tie_break_left, keep_dims)[1]


@builtin
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    """int32 index of the smallest element along `axis`."""
    return min(input, axis, True, tie_break_left, keep_dims)[1]


@builtin
def cumsum(input, axis=0, reverse=False, dtype=None):
    """Running sum along `axis`; types as in `sum`."""
    input = expect_tensor(input, "input")
    return associative_scan(_to(input, _sum_type(input.dtype, dtype)), axis, _sum_combine, reverse)


@builtin
def cumprod(input, axis=0, reverse=False, dtype=None):
    """Running product along `axis`; types as in `sum`."""
    input = expect_tensor(input, "input")
    return associative_scan(_to(input, _sum_type(input.dtype, dtype)), axis, _prod_combine, reverse)
