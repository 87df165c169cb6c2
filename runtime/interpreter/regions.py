"""Reductions, scans and elementwise maps of the NumPy builder: the user's function runs on whole blocks at a time.

A function with control flow on its operands cannot: `NotOneValue` is raised where it asks for a Python value of a block, and the function
is run again on one element after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.language.builder import Combine, Region
from tilewright.language.dtypes import block_type, dtype

from .values import Handle, Pointers, shaped


class NotOneValue(TypeError):
    """A Python bool or number was asked of a tensor with several elements."""


class RegionMixin:
    """`reduce`, `scan` and `map_elementwise`."""

    def reduce(
        self, sources: Sequence[Handle], axis: int, combine: Combine, types: Sequence[block_type], tys: Sequence[dtype]
    ) -> list[Handle]:
        columns = [shaped(lambda x: np.moveaxis(x, axis, 0), h) for h in sources]
        rest = tys[0].shape
        size = types[0].shape[axis]
        while size > 1:  # neighbours are combined, so the order of operands is kept
            size //= 2
            columns = _combine(combine, _every_other(columns, 0), _every_other(columns, 1), (size, *rest))
        return [shaped(lambda x: x[0], c) for c in columns]

    def scan(
        self, sources: Sequence[Handle], axis: int, reverse: bool, combine: Combine, types: Sequence[block_type]
    ) -> list[Handle]:
        shape = types[0].shape
        rest = shape[:axis] + shape[axis + 1 :]
        columns = [shaped(lambda x: np.moveaxis(x, axis, 0)[:: -1 if reverse else 1], h) for h in sources]
        columns = _scan(combine, columns, shape[axis], rest)
        return [shaped(lambda x: np.moveaxis(x[:: -1 if reverse else 1], 0, axis), c) for c in columns]

    def map_elementwise(self, sources: Sequence[Handle], pack: int, body: Region, types: Sequence[block_type]) -> list[Handle]:
        shape, count = types[0].shape, types[0].numel // pack
        lanes = [shaped(lambda x, i=i: x.reshape(count, pack)[:, i], h) for h in sources for i in range(pack)]
        try:
            results = body(lanes)
        except NotOneValue:
            rows = [body([shaped(lambda x, r=r: x[r], lane) for lane in lanes]) for r in range(count)]
            results = [_stack(column) for column in zip(*rows, strict=True)]
        results = [shaped(lambda x: np.broadcast_to(x, (count,)), r) for r in results]
        return [
            shaped(lambda x: x.reshape(shape), _stack(results[i : i + pack], axis=1)) for i in range(0, len(results), pack)
        ]


def _every_other(columns: list[Handle], start: int) -> list[Handle]:
    return [shaped(lambda x: x[start::2], c) for c in columns]


def _combine(combine: Combine, left: list[Handle], right: list[Handle], shape: tuple[int, ...]) -> list[Handle]:
    """Combine blocks of `shape`, element by element if need be."""
    try:
        results = combine([*left, *right], shape)
        return [shaped(lambda x: np.broadcast_to(x, shape), r) for r in results]
    except NotOneValue:
        operands = [shaped(lambda x: x.reshape(-1), h) for h in (*left, *right)]
        count = (operands[0].address if type(operands[0]) is Pointers else operands[0]).size
        rows = [combine([shaped(lambda x, i=i: x[i], h) for h in operands]) for i in range(count)]
        return [shaped(lambda x: x.reshape(shape), _stack(column)) for column in zip(*rows, strict=True)]


def _scan(combine: Combine, columns: list[Handle], size: int, rest: tuple[int, ...]) -> list[Handle]:
    """Inclusive scan along dimension 0: scan the sums of pairs, then fill in the even places."""
    if size == 1:
        return columns
    half = size // 2
    even = _every_other(columns, 0)
    odd = _scan(combine, _combine(combine, even, _every_other(columns, 1), (half, *rest)), half, rest)
    if half > 1:  # blocks are powers of two in size: lane 0, which has nothing before it, goes along and is replaced
        before = [_concatenate(shaped(lambda x: x[:1], e), shaped(lambda x: x[:-1], o)) for e, o in zip(even, odd, strict=True)]
        later = _combine(combine, before, even, (half, *rest))
        even = [_concatenate(shaped(lambda x: x[:1], e), shaped(lambda x: x[1:], x)) for e, x in zip(even, later, strict=True)]
    return [shaped(lambda x: x.reshape(size, *rest), _stack(pair, axis=1)) for pair in zip(even, odd, strict=True)]


def _stack(handles: Sequence[Handle], axis: int = 0) -> Handle:
    if type(handles[0]) is Pointers:
        return Pointers(np.stack([h.address for h in handles], axis), _common_base(handles))
    return np.stack(handles, axis)


def _concatenate(a: Handle, b: Handle) -> Handle:
    if type(a) is Pointers:
        return Pointers(np.concatenate((a.address, b.address)), _common_base((a, b)))
    return np.concatenate((a, b))


def _common_base(handles: Sequence[Pointers]):
    return handles[0].base if all(h.base is handles[0].base for h in handles) else None
