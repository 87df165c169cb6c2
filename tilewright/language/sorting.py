"""Bitonic sorting networks, and flip: exchanges between elements whose indices differ in one bit.

A tensor is viewed as [.., 2, inner], where the dimension of size 2 is that bit of the index. The partner of an element is the exclusive
or of the pair with the element itself, so that an exchange is a reduction within threads or by shuffles, and no data changes place.
"""

from __future__ import annotations

from typing import Any

from .core import active, builtin, shown, tensor
from .dtypes import get_int_dtype
from .semantic.arith import emit_select, maximum, minimum
from .semantic.cast import bitcast
from .semantic.regions import reduce
from .semantic.shape import arange, axis_argument, broadcast_to_, reshape
from .semantic.values import expect_tensor


def _pairs(x: tensor, bit: int) -> tensor:
    """[numel / 2**(bit + 1), 2, 2**bit]: dimension 1 is bit `bit` of the flat index."""
    return reshape(x, (x.type.numel >> (bit + 1), 2, 1 << bit))


def _partner(pairs: tensor) -> tensor:
    """Each element's opposite along dimension 1, bit for bit."""
    s, ty = active(), pairs.dtype
    bits = pairs if ty.is_int() else bitcast(s, pairs, get_int_dtype(ty.primitive_bitwidth, True))
    both = reduce(bits, 1, lambda a, b: a ^ b, keep_dims=True)
    return bitcast(s, bits ^ both, ty)


def _compare_and_swap(x: tensor, bit: int, direction_bit: int | None, descending: bool) -> tensor:
    """Order the pairs across index bit `bit`: ascending where index bit `direction_bit` is 0 and descending where it is 1, or all ascending
    if it is None; the other way round if `descending`."""
    s = active()
    pairs = _pairs(x, bit)
    partner = _partner(pairs)
    shape = pairs.type.shape
    is_right = broadcast_to_(reshape(arange(0, 2), (1, 2, 1)) == 1, shape)
    left, right = emit_select(s, is_right, partner, pairs), emit_select(s, is_right, pairs, partner)
    swap = left > right
    if direction_bit is not None:
        reverse = ((arange(0, shape[0]) >> (direction_bit - bit - 1)) & 1) == (0 if descending else 1)
        swap = swap ^ reshape(reverse, (shape[0], 1, 1))
    elif descending:
        swap = swap ^ True
    return reshape(emit_select(s, swap, partner, pairs), x.type.shape)


def _merge(x: tensor, stage: int, last: bool, descending: bool) -> tensor:
    """Sort runs of 2**stage that are bitonic; directions alternate from run to run unless it is the `last` stage."""
    for bit in reversed(range(stage)):
        x = _compare_and_swap(x, bit, None if last else stage, descending)
    return x


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
    for stage in range(1, stages + 1):
        x = _merge(x, stage, stage == stages, bool(descending))
    return x


@builtin
def bitonic_merge(x, dim=None, descending=False):
    """Sort along the last dimension, which holds a bitonic sequence (one half ascending, the other descending)."""
    return _merge(x, _last_dim(x, dim, "bitonic_merge"), True, bool(descending))


@builtin
def topk(x, k, dim=None, descending=True):
    """The k largest along the last dimension in descending order, or the k smallest in ascending order if not `descending`.

    k is a power of two."""
    stages = _last_dim(x, dim, "topk")
    n = x.type.shape[-1]
    if not isinstance(k, int) or k < 1 or k & (k - 1) or k > n:
        raise ValueError(f"topk: k must be a power of 2 from 1 to {n}, got {k}")
    descending = bool(descending)
    log_k = k.bit_length() - 1
    for stage in range(1, log_k + 1):
        x = _merge(x, stage, stage == stages, descending)
    keep = maximum if descending else minimum
    batch = x.type.shape[:-1]
    for left in reversed(range(log_k, stages)):
        # neighbouring runs are ordered in opposite directions: the better of each pair are the k best of both, and bitonic
        best = reduce(_pairs(x, log_k), 1, lambda a, b: keep(a, b))
        x = reshape(best, (*batch, 1 << left))
        x = _merge(x, log_k, left == log_k, descending)
    return x


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
