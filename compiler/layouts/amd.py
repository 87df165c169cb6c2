"""Fragments of AMD's matrix instructions as linear layouts: MFMA (CDNA, 64 lanes) and WMMA (RDNA, 32 lanes).

Conventions are those of `mma.py`: accumulators are [.., M, N], A is [.., M, K], B is [.., K, N]; warps hold contiguous parts.
`transposed` gives the layout of an instruction issued with A and B exchanged, whose result is the transposed tile: a lane then holds
neighbouring columns, which makes for wide stores.
"""

from __future__ import annotations

from functools import lru_cache

from .blocked import TileBuilder
from .core import LinearLayout, log2_exact


def _finish(tile: TileBuilder, warps: tuple[int, ...], fill_first: int, k: int | None) -> LinearLayout:
    """Fill each warp's part, `fill_first` in front, then append the warps; along `k` they hold copies."""
    rank = len(tile.shape)
    for dim in [fill_first, *(d for d in reversed(range(rank)) if d != fill_first)]:
        limit = tile.shape[dim] if dim == k else max(tile.extent[dim], tile.shape[dim] // warps[dim])
        tile.fill(dim, limit)
    for dim in reversed(range(rank)):
        if dim == k:
            tile.broadcast("warp", warps[dim])
        else:
            tile.repeat("warp", dim, warps[dim])
    return tile.build()


def _bits(tile: TileBuilder, name: str, dim: int, *strides: int) -> None:
    for stride in strides:
        tile.bit(name, dim, stride)


@lru_cache(maxsize=1024)
def mfma_accumulator(
    shape: tuple[int, ...], warps: tuple[int, ...], instr_mn: tuple[int, int], transposed: bool = False, is_f64: bool = False
) -> LinearLayout:
    """Return the accumulator layout of MFMA 32x32, 16x16, 4x64 or 64x4 (4x4x4 with 16 blocks)."""
    rank = len(shape)
    m, n = rank - 2, rank - 1
    size = instr_mn if not transposed else instr_mn[::-1]
    if transposed:
        m, n = n, m
    tile = TileBuilder(shape)
    if size == (32, 32):
        _bits(tile, "lane", n, 1, 2, 4, 8, 16)
        _bits(tile, "lane", m, 4)
        _bits(tile, "register", m, 1, 2, 8, 16)
    elif size == (16, 16):
        _bits(tile, "lane", n, 1, 2, 4, 8)
        _bits(tile, "lane", m, *((1, 2) if is_f64 else (4, 8)))
        _bits(tile, "register", m, *((4, 8) if is_f64 else (1, 2)))
    elif size == (4, 64):
        _bits(tile, "lane", n, 1, 2, 4, 8, 16, 32)
        _bits(tile, "register", m, 1, 2)
    elif size == (64, 4):
        _bits(tile, "lane", n, 1, 2)
        _bits(tile, "lane", m, 4, 8, 16, 32)
        _bits(tile, "register", m, 1, 2)
    else:
        raise ValueError(f"no MFMA of {instr_mn[0]}x{instr_mn[1]}")
    return _finish(tile, warps, rank - 1, None)


@lru_cache(maxsize=1024)
def mfma_operand(shape: tuple[int, ...], warps: tuple[int, ...], instr_outer: int, k_width: int, operand: int) -> LinearLayout:
    """Return an operand's layout of MFMA: `instr_outer` rows (A) or columns (B), `k_width` neighbouring K elements for each lane."""
    rank = len(shape)
    outer, k = (rank - 2, rank - 1) if operand == 0 else (rank - 1, rank - 2)
    if instr_outer not in (4, 16, 32, 64):
        raise ValueError(f"no MFMA with {instr_outer} rows or columns")
    tile = TileBuilder(shape)
    for i in range(log2_exact(k_width)):
        tile.bit("register", k, 1 << i)
    if instr_outer == 4:
        # One 4-wide operand is shared by the 16 blocks, each of which takes its own K.
        _bits(tile, "lane", outer, 1, 2)
        groups = 16
    else:
        for i in range(log2_exact(instr_outer)):
            tile.bit("lane", outer, 1 << i)
        groups = 64 // instr_outer
    for i in range(log2_exact(groups)):
        tile.bit("lane", k, k_width << i)
    return _finish(tile, warps, k, k)


@lru_cache(maxsize=1024)
def wmma_accumulator(shape: tuple[int, ...], warps: tuple[int, ...], version: int, transposed: bool = False) -> LinearLayout:
    """Return the accumulator layout of WMMA 16x16: version 1 (RDNA3) interleaves the rows of the lane halves, 2 and 3 do not."""
    rank = len(shape)
    m, n = (rank - 1, rank - 2) if transposed else (rank - 2, rank - 1)
    tile = TileBuilder(shape)
    _bits(tile, "lane", n, 1, 2, 4, 8)
    if version == 1:
        _bits(tile, "register", m, 2, 4, 8)
        _bits(tile, "lane", m, 1)
    elif version in (2, 3):
        _bits(tile, "register", m, 1, 2, 4)
        _bits(tile, "lane", m, 8)
    else:
        raise ValueError(f"no WMMA version {version}")
    return _finish(tile, warps, rank - 1, None)


@lru_cache(maxsize=1024)
def wmma_operand(shape: tuple[int, ...], warps: tuple[int, ...], version: int, operand: int, k_width: int = 8) -> LinearLayout:
    """Return an operand's layout of WMMA. Version 1: all 16 K of a row in each lane, both lane halves alike. Versions 2 and 3: the halves
    take alternate runs of `k_width` K elements."""
    rank = len(shape)
    outer, k = (rank - 2, rank - 1) if operand == 0 else (rank - 1, rank - 2)
    tile = TileBuilder(shape)
    _bits(tile, "lane", outer, 1, 2, 4, 8)
    if version == 1:
        _bits(tile, "register", k, 1, 2, 4, 8)
        tile.broadcast("lane", 2)
    elif version in (2, 3):
        for i in range(log2_exact(k_width)):
            tile.bit("register", k, 1 << i)
        tile.bit("lane", k, k_width)
    else:
        raise ValueError(f"no WMMA version {version}")
    return _finish(tile, warps, k, k)
