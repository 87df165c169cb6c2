"""Fragments of NVIDIA's matrix instructions as linear layouts: mma.sync (m16n8, and m8n8k4 for f64) and wgmma (m64nN).

`bits` is the width of an element. Rows of an accumulator are M and columns N; an A operand is [M, K], a B operand [K, N]; leading
dimensions of tensors of higher rank are batches. Warps hold contiguous parts of M and N, so that a warp's neighbouring instructions read
neighbouring shared memory. `warps` gives the number of warps for each dimension of the accumulator.
"""

from __future__ import annotations

from functools import lru_cache

from .blocked import TileBuilder
from .core import LinearLayout, log2_exact


def mma_shape(bits: int) -> tuple[int, int, int]:
    """Return (m, n, k) of the mma.sync instruction for operands of `bits` bits: 256 bits of K, or m8n8k4 for f64."""
    if bits == 64:
        return 8, 8, 4
    if bits not in (4, 8, 16, 32):
        raise ValueError(f"no mma.sync for elements of {bits} bits")
    return 16, 8, 256 // bits


def _accumulator_tile(tile: TileBuilder, m: int, n: int) -> None:
    """Append the m16n8 (or m8n8) accumulator: a thread has 2 neighbouring columns in each group of 8 rows."""
    tile.bit("register", n, 1)
    for stride in (2, 4):
        tile.bit("lane", n, stride)
    for stride in (1, 2, 4):
        tile.bit("lane", m, stride)


def _operand_tile(tile: TileBuilder, outer: int, k: int, bits: int, is_a: bool) -> None:
    """Append one instruction's operand: 32-bit registers of neighbouring K, four lanes along K, eight along M or N."""
    if bits == 64:
        for stride in (1, 2):
            tile.bit("lane", k, stride)
        for stride in (1, 2, 4):
            tile.bit("lane", outer, stride)
        return
    packed = 32 // bits
    for i in range(log2_exact(packed)):
        tile.bit("register", k, 1 << i)
    if is_a:
        tile.bit("register", outer, 8)
    tile.bit("register", k, 4 * packed)
    for stride in (packed, 2 * packed):
        tile.bit("lane", k, stride)
    for stride in (1, 2, 4):
        tile.bit("lane", outer, stride)


def _check_warps(shape: tuple[int, ...], warps: tuple[int, ...]) -> None:
    if len(shape) < 2 or len(warps) != len(shape):
        raise ValueError(f"warps {warps} do not fit a matrix of shape {shape}")


def _warp_bits(tile: TileBuilder, warps: tuple[int, ...], skip: int | None) -> None:
    """Append the warps, N first, each with a contiguous part; along `skip` (the K of an operand) they hold copies.

    A warp that has no part of its own, because the tensor is smaller than the warps' tiles, holds a copy as well.
    """
    for dim in reversed(range(len(warps))):
        if dim == skip:
            tile.broadcast("warp", warps[dim])
        else:
            tile.repeat("warp", dim, warps[dim])


def _part(tile: TileBuilder, dim: int, warps: int) -> int:
    return max(tile.extent[dim], tile.shape[dim] // warps)


@lru_cache(maxsize=1024)
def mma_accumulator(shape: tuple[int, ...], warps: tuple[int, ...], bits: int = 32) -> LinearLayout:
    """Return the accumulator layout of mma.sync; `bits` is 64 for f64 and 32 or 16 for the m16n8 forms.

    Registers: first those of one instruction, then instructions along N, then M, then batches.
    """
    _check_warps(shape, warps)
    m, n = len(shape) - 2, len(shape) - 1
    tile = TileBuilder(shape)
    _accumulator_tile(tile, m, n)
    if bits != 64:
        tile.bit("register", m, 8)
    for dim in reversed(range(len(shape))):
        tile.fill(dim, _part(tile, dim, warps[dim]))
    _warp_bits(tile, warps, None)
    return tile.build()


@lru_cache(maxsize=1024)
def mma_operand(shape: tuple[int, ...], warps: tuple[int, ...], bits: int, operand: int) -> LinearLayout:
    """Return the layout of operand A (`operand` 0, [.., M, K]) or B (1, [.., K, N]) of mma.sync for the accumulator's `warps`.

    Registers: first those of one instruction, then instructions along K, then along M or N, then batches.
    """
    _check_warps(shape, warps)
    rank = len(shape)
    outer, k = (rank - 2, rank - 1) if operand == 0 else (rank - 1, rank - 2)
    tile = TileBuilder(shape)
    _operand_tile(tile, outer, k, bits, operand == 0)
    tile.fill(k)
    tile.fill(outer, _part(tile, outer, warps[outer]))
    for dim in reversed(range(rank - 2)):
        tile.fill(dim, _part(tile, dim, warps[dim]))
    _warp_bits(tile, warps, k)
    return tile.build()


def _wgmma_split(m: int, num_warps: int) -> tuple[int, int]:
    """Return the number of warpgroups along M and along N: 64 rows a warpgroup, the others tile N."""
    if num_warps % 4 or m % 64:
        raise ValueError(f"wgmma needs whole warpgroups and a multiple of 64 rows, not {num_warps} warps and {m} rows")
    groups = num_warps // 4
    along_m = min(groups, m // 64)
    return along_m, groups // along_m


def wgmma_instruction(shape: tuple[int, ...], num_warps: int, bits: int) -> tuple[int, int, int]:
    """Return (64, n, k) of the widest wgmma for an [M, N] tile and operands of `bits` bits (n is at most 256, k is 256 bits)."""
    rows, cols = shape
    along_n = _wgmma_split(rows, num_warps)[1]
    return 64, min(256, max(8, cols // along_n)), 256 // bits


@lru_cache(maxsize=1024)
def wgmma_accumulator(shape: tuple[int, ...], num_warps: int) -> LinearLayout:
    """Return the accumulator layout of wgmma for an [M, N] tile.

    The four warps of a warpgroup hold 16 rows each; warpgroups tile M in steps of 64 rows and then N in contiguous parts.
    Registers: all N of a warpgroup's 64 rows, then its further blocks of rows; 16-bit accumulators are the same, two to a register.
    """
    rows, cols = shape
    along_m, along_n = _wgmma_split(rows, num_warps)
    tile = TileBuilder(shape)
    _accumulator_tile(tile, 0, 1)
    tile.bit("register", 0, 8)
    tile.fill(1, max(8, cols // along_n))
    tile.repeat("warp", 0, 4 * along_m)
    tile.fill(0)
    tile.repeat("warp", 1, along_n)
    return tile.build()


@lru_cache(maxsize=1024)
def wgmma_operand_a(shape: tuple[int, ...], num_warps: int, bits: int) -> LinearLayout:
    """Return the layout of an [M, K] operand A that wgmma reads from registers (k16 for 16-bit, k32 for 8-bit, k8 for tf32).

    Registers: those of one instruction, then K steps, then blocks of rows. Warpgroups that tile N hold copies.
    """
    rows, _ = shape
    along_m, along_n = _wgmma_split(rows, num_warps)
    tile = TileBuilder(shape)
    _operand_tile(tile, 0, 1, bits, True)
    tile.fill(1)
    tile.repeat("warp", 0, 4 * along_m)
    tile.fill(0)
    tile.broadcast("warp", along_n)
    return tile.build()
