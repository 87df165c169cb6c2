"""Reductions, scans and elementwise maps of the NumPy builder: the user's function runs on whole blocks at a time.

A function with control flow on its operands cannot: `NotOneValue` is raised where it asks for a Python value of a block, and the function
is run again on one element after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.language.builder import Combine, Region
from tilewright.language.dtypes import block_type, dtype

from .values import Divergence, Handle, Pointers, shaped, with_shape


class NotOneValue(TypeError):
    """A Python bool or number was asked of a tensor with several elements."""


class RegionMixin:
    """`reduce`, `scan` and `map_elementwise`."""

    batch: int
    mapping = False  # a function on scalars runs on all elements at once: scalars may have elements

    def reduce(
        self,
        sources: Sequence[Handle],
        axis: int,
        combine: Combine,
        types: Sequence[block_type],
        tys: Sequence[dtype],
        *,
        commutative: bool = False,
    ) -> list[Handle]:
        rank, size, rest = len(types[0].shape), types[0].shape[axis], tys[0].shape
        columns = [shaped(lambda x: np.moveaxis(x, axis - rank, -rank), h) for h in sources]
        while size > 1:  # neighbours are combined, so the order of operands is kept
            size //= 2
            columns = _combine(combine, _part(columns, rank, 0, None, 2), _part(columns, rank, 1, None, 2), (size, *rest))
        return [shaped(lambda x: np.squeeze(x, -rank), c) for c in columns]

    def scan(self, sources: Sequence[Handle], axis: int, reverse: bool, combine: Combine, types: Sequence[block_type]) -> list[Handle]:
        shape, rank = types[0].shape, len(types[0].shape)
        step = -1 if reverse else 1
        columns = [shaped(lambda x: np.moveaxis(x, axis - rank, -rank), h) for h in sources]
        columns = _scan(combine, _part(columns, rank, None, None, step), shape[axis], shape[:axis] + shape[axis + 1 :])
        return [shaped(lambda x: np.moveaxis(x, -rank, axis - rank), c) for c in _part(columns, rank, None, None, step)]

    def map_elementwise(self, sources: Sequence[Handle], body: Region, types: Sequence[block_type]) -> list[Handle]:
        shape, count = types[0].shape, types[0].numel
        lanes = [shaped(lambda x: with_shape(x, (count,)), h) for h in sources]
        self.mapping = True
        try:
            results = body(lanes)
        except NotOneValue:
            self.mapping = False
            if self.batch:
                raise Divergence from None
            rows = [body([shaped(lambda x, r=r: x[r], lane) for lane in lanes]) for r in range(count)]
            results = [_stack(column) for column in zip(*rows, strict=True)]
        finally:
            self.mapping = False
        results = [shaped(lambda x: np.broadcast_to(x, np.broadcast_shapes((count,), x.shape)), r) for r in results]
        return [shaped(lambda x: with_shape(x, shape), r) for r in results]


def _part(columns: list[Handle], rank: int, start: int | None, end: int | None, step: int = 1) -> list[Handle]:
    """A slice along the first dimension of blocks of `rank`."""
    index = (..., slice(start, end, step), *(slice(None),) * (rank - 1))
    return [shaped(lambda x: x[index], c) for c in columns]


def _combine(combine: Combine, left: list[Handle], right: list[Handle], shape: tuple[int, ...]) -> list[Handle]:
    """Combine blocks of `shape`, element by element if need be."""
    try:
        results = combine([*left, *right], shape)
        return [shaped(lambda x: np.broadcast_to(x, np.broadcast_shapes(shape, x.shape)), r) for r in results]
    except NotOneValue:
        if any((h.address if type(h) is Pointers else h).ndim > len(shape) for h in (*left, *right)):
            raise Divergence from None
        operands = [shaped(lambda x: x.reshape(-1), h) for h in (*left, *right)]
        count = (operands[0].address if type(operands[0]) is Pointers else operands[0]).size
        rows = [combine([shaped(lambda x, i=i: x[i], h) for h in operands]) for i in range(count)]
        return [shaped(lambda x: x.reshape(shape), _stack(column)) for column in zip(*rows, strict=True)]


def _scan(combine: Combine, columns: list[Handle], size: int, rest: tuple[int, ...]) -> list[Handle]:
    """Inclusive scan along dimension 0: scan the sums of pairs, then fill in the even places."""
    if size == 1:
        return columns
    half, rank = size // 2, 1 + len(rest)
    even = _part(columns, rank, 0, None, 2)
    odd = _scan(combine, _combine(combine, even, _part(columns, rank, 1, None, 2), (half, *rest)), half, rest)
    if half > 1:  # blocks are powers of two in size: lane 0, which has nothing before it, goes along and is replaced
        first = _part(even, rank, 0, 1)
        before = _concatenated(first, _part(odd, rank, 0, -1), rank)
        even = _concatenated(first, _part(_combine(combine, before, even, (half, *rest)), rank, 1, None), rank)
    return [shaped(lambda x: with_shape(x, (size, *rest)), _stack(pair, -rank)) for pair in zip(even, odd, strict=True)]


def _stack(handles: Sequence[Handle], axis: int = 0) -> Handle:
    """Join blocks of one shape along a new dimension; one that differs between programs makes all differ."""
    if type(handles[0]) is Pointers:
        return Pointers(np.stack(np.broadcast_arrays(*(h.address for h in handles)), axis), _common_base(handles))
    return np.stack(np.broadcast_arrays(*handles), axis)


def _concatenated(left: list[Handle], right: list[Handle], rank: int) -> list[Handle]:
    """Join blocks of `rank` along their first dimension, pair by pair."""

    def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.ndim < b.ndim:
            a = np.broadcast_to(a, (b.shape[0], *a.shape))
        elif b.ndim < a.ndim:
            b = np.broadcast_to(b, (a.shape[0], *b.shape))
        return np.concatenate((a, b), -rank)

    return [
        Pointers(join(a.address, b.address), _common_base((a, b))) if type(a) is Pointers else join(a, b)
        for a, b in zip(left, right, strict=True)
    ]


def _common_base(handles: Sequence[Pointers]):
    return handles[0].base if all(h.base is handles[0].base for h in handles) else None
