"""Bitonic sorting networks, and flip: exchanges between elements whose indices differ in one bit.

A tensor is viewed as [.., 2, inner], where the dimension of size 2 is that bit of the index. The partner of an element is the exclusive
or of the pair with the element itself, so that an exchange is a reduction within threads or by shuffles, and no data changes place.

Sorted are keys: integers in whose order the values are (those of floats have the order -NaN, -inf, .., -0, 0, .., inf, NaN). What goes the
other way round, all of it or every second run, is complemented and sorted upwards like the rest, so that each element takes the minimum or
the maximum of a pair by a bit of its index alone.
"""

from __future__ import annotations

from typing import Any

from .core import active, builtin, shown, tensor
from .dtypes import get_int_dtype, int8
from .semantic.arith import emit_select, maximum, minimum
from .semantic.cast import bitcast, cast
from .semantic.regions import reduce
from .semantic.shape import arange, axis_argument, broadcast_to_, reshape
from .semantic.values import constant, expect_tensor


def _pairs(x: tensor, bit: int) -> tensor:
    """[numel / 2**(bit + 1), 2, 2**bit]: dimension 1 is bit `bit` of the flat index."""
    return reshape(x, (x.type.numel >> (bit + 1), 2, 1 << bit))


def _bits(x: tensor) -> tensor:
    """Floats as signed integers of their bits; integers as they are."""
    return x if x.dtype.is_int() else bitcast(active(), x, get_int_dtype(x.dtype.primitive_bitwidth, True))


def _partner(pairs: tensor) -> tensor:
    """Each element's opposite along dimension 1, bit for bit."""
    bits = _bits(pairs)
    both = reduce(bits, 1, lambda a, b: a ^ b, keep_dims=True)
    return bitcast(active(), bits ^ both, pairs.dtype)


def _keys(x: tensor, descending: bool) -> tensor:
    """Integers whose order is that of the elements, or the opposite one."""
    keys = cast(active(), x, int8) if x.dtype.is_bool() else _bits(x)
    if x.dtype.is_floating():
        keys = _in_order(keys)
    return ~keys if descending else keys


def _values(keys: tensor, dtype: Any, descending: bool) -> tensor:
    """The inverse of `_keys`."""
    keys = ~keys if descending else keys
    if dtype.is_bool():
        return cast(active(), keys, dtype)
    return bitcast(active(), _in_order(keys) if dtype.is_floating() else keys, dtype)


def _in_order(bits: tensor) -> tensor:
    """The bits of floats as integers of the same order, and back: those of negative numbers but the sign are complemented."""
    width = bits.dtype.primitive_bitwidth
    return bits ^ ((bits >> (width - 1)) & constant(active(), (1 << (width - 1)) - 1, bits.dtype))


def _with_runs_turned(keys: tensor, stage: int) -> tensor:
    """Complement every second run of 2**stage elements along the last dimension."""
    shape, dtype = keys.type.shape, keys.dtype
    odd = (arange(0, shape[-1]) >> stage) & 1
    mask = cast(active(), 0 - odd, dtype)
    return keys ^ reshape(mask, (*(1 for _ in shape[1:]), shape[-1]))


def _order_pairs(keys: tensor, bit: int) -> tensor:
    """Put the smaller element of each pair across index bit `bit` first."""
    pairs = _pairs(keys, bit)
    partner = _partner(pairs)
    is_second = broadcast_to_(reshape(arange(0, 2), (1, 2, 1)) == 1, pairs.type.shape)
    return reshape(emit_select(active(), is_second, maximum(pairs, partner), minimum(pairs, partner)), keys.type.shape)


def _merge(keys: tensor, stage: int, alternating: bool = False) -> tensor:
    """Sort runs of 2**stage that are bitonic, upwards; every second one downwards if `alternating`."""
    if alternating:
        keys = _with_runs_turned(keys, stage)
    for bit in reversed(range(stage)):
        keys = _order_pairs(keys, bit)
    return _with_runs_turned(keys, stage) if alternating else keys


def _last_dim(x: tensor, dim: Any, what: str) -> int:
    """log2 of the size of the last dimension, the only one that can be sorted."""
    rank = len(expect_tensor(x, "x").type.shape)
    if rank == 0:
        raise ValueError(f"{what} needs a tensor of rank 1 or more, got {shown(x)}")
    if dim is not None and axis_argument(dim, rank, "dim") != rank - 1:
        raise ValueError(f"{what}: only the last dimension ({rank - 1}) is currently supported, got dim {dim}")
    return x.type.shape[-1].bit_length() - 1


@builtin
def sort(x, dim=None, descending=False):
    """Sort along the last dimension, ascending unless `descending`."""
    stages = _last_dim(x, dim, "sort")
    keys = _keys(x, bool(descending))
    for stage in range(1, stages + 1):
        keys = _merge(keys, stage, stage != stages)
    return _values(keys, x.dtype, bool(descending))


@builtin
def bitonic_merge(x, dim=None, descending=False):
    """Sort along the last dimension, which holds a bitonic sequence (one half ascending, the other descending)."""
    stages = _last_dim(x, dim, "bitonic_merge")
    return _values(_merge(_keys(x, bool(descending)), stages), x.dtype, bool(descending))


@builtin
def topk(x, k, dim=None, descending=True):
    """The k largest along the last dimension in descending order, or the k smallest in ascending order if not `descending`.

    k is a power of two."""
    stages = _last_dim(x, dim, "topk")
    n = x.type.shape[-1]
    if not isinstance(k, int) or k < 1 or k & (k - 1) or k > n:
        raise ValueError(f"topk: k must be a power of 2 from 1 to {n}, got {k}")
    log_k = k.bit_length() - 1
    keys = _keys(x, bool(descending))
    for stage in range(1, log_k + 1):
        keys = _merge(keys, stage, stage != stages)
    batch = x.type.shape[:-1]
    for left in reversed(range(log_k, stages)):
        # neighbouring runs are ordered in opposite directions: the lesser of each pair are the k least of both, and bitonic
        best = reduce(_pairs(keys, log_k), 1, lambda a, b: minimum(a, b))
        keys = _merge(reshape(best, (*batch, 1 << left)), log_k, left != log_k)
    return _values(keys, x.dtype, bool(descending))


@builtin
def flip(x, dim=None):
    """The elements in reverse along `dim`, by default the last."""
    shape = expect_tensor(x, "x").type.shape
    dim = axis_argument(-1 if dim is None else dim, len(shape), "dim")
    inner = 1
    for n in shape[dim + 1 :]:
        inner *= n
    first = inner.bit_length() - 1
    for bit in range(first, first + shape[dim].bit_length() - 1):
        x = _partner(_pairs(x, bit))
    return reshape(x, shape)
