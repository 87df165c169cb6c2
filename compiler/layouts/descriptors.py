"""What wgmma and TMA must be told of a shared layout: matrix descriptors, and the boxes that fill a buffer.

wgmma reads an operand as 16-byte chunks in a fixed pattern. With S the swizzle (128, 64, 32 bytes, or none):

- K-major: eight rows of M or N lie S bytes apart, further groups of eight rows `stride` bytes apart; without a swizzle rows are 16 bytes
  long and the instruction's two chunks of K `leading` bytes apart.
- MN-major (16-bit types only): eight rows of K lie S bytes apart, the second group of eight `stride` bytes apart, and parts of M or N of
  S bytes `leading` bytes apart; without a swizzle the two distances change places.

In each row the chunks are XORed by address bits 7 and up, which the layout's maps contain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from . import f2
from .core import log2_exact
from .shared import SWIZZLES, SharedLayout, column_blocks, nvmma

CHUNK_BYTES = 16
#: Bytes of K that one instruction takes.
INSTRUCTION_K_BYTES = 32
_MODES = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class MatrixDescriptor:
    """Where wgmma finds an operand: distances in bytes, `mn_major` for the transposed form, and the offsets of its parts.

    `outer` and `k` are the byte offsets of the bits of the M or N index and of the K index; parts of an operand that are whole instructions
    apart lie at the sum of these.
    """

    swizzle: int
    mn_major: bool
    leading: int
    stride: int
    outer: tuple[int, ...]
    k: tuple[int, ...]

    def bits(self) -> int:
        """Return the descriptor's 64 bits with a start address of zero."""
        return _MODES[self.swizzle] << 62 | (self.stride >> 4) << 32 | (self.leading >> 4) << 16

    def offset(self, outer: int, k: int) -> int:
        """Return the byte offset of the instruction's operand that starts at index `outer` of M or N and `k` of K."""
        total = sum(c for bit, c in enumerate(self.outer) if outer >> bit & 1)
        return total + sum(c for bit, c in enumerate(self.k) if k >> bit & 1)


@lru_cache(maxsize=1024)
def matrix_descriptor(shared: SharedLayout, outer_dim: int, extent: int, element_bits: int) -> MatrixDescriptor | None:
    """Return the descriptor of an operand whose M or N is dimension `outer_dim` of a buffer, in instructions of `extent` along it.

    None if wgmma cannot read the layout: not one of its swizzles, padded, or MN-major with a type other than 16-bit.
    """
    if shared.padding is not None or shared.linear.rank != 2:
        return None
    size = element_bits // 8
    columns = [c * size for c in shared.address_columns()]
    layout = shared.linear
    by_dim = []
    for dim in (outer_dim, 1 - outer_dim):
        shift = layout.shifts[dim]
        by_dim.append(tuple(columns[shift : shift + log2_exact(layout.out_sizes[dim])]))
    outer, k = by_dim
    if 1 << len(outer) < extent or size << len(k) < INSTRUCTION_K_BYTES:
        return None
    for swizzle in _MODES:
        for mn_major in (False, True) if element_bits == 16 else (False,):
            found = _match(outer, k, swizzle, mn_major, extent, size)
            if found is not None:
                return found
    return None


def _match(outer, k, swizzle: int, mn_major: bool, extent: int, size: int) -> MatrixDescriptor | None:
    """Return the descriptor if the columns follow one of the patterns."""
    row_bytes = swizzle or CHUNK_BYTES
    span_bits = log2_exact(row_bytes // size)
    inner, rows = (outer, k) if mn_major else (k, outer)
    # Inside one row of `row_bytes`, and its eight rows with the swizzle's XOR.
    if len(inner) < span_bits or inner[:span_bits] != tuple(size << i for i in range(span_bits)) or len(rows) < 3:
        return None
    for bit in range(3):
        plain = row_bytes << bit
        if rows[bit] != plain ^ _chunk_xor(plain, swizzle):
            return None
    repeat = 8 * row_bytes
    beyond, groups = inner[span_bits:], rows[3:]
    if mn_major:
        needed = max(0, log2_exact(extent) - span_bits)
        span_distance = _uniform(beyond[:needed], 16)
        group_distance = _uniform(groups[:1], repeat)
        pair = (group_distance, span_distance) if swizzle == 0 else (span_distance, group_distance)
    else:
        needed = max(0, log2_exact(INSTRUCTION_K_BYTES // size) - span_bits)
        span_distance = _uniform(beyond[:needed], 16)
        group_distance = _uniform(groups[: log2_exact(extent) - 3], repeat)
        pair = span_distance, group_distance
    if None in pair or any(c % repeat for c in (*beyond, *groups) if swizzle):
        return None
    return MatrixDescriptor(swizzle, mn_major, *pair, outer, k)


def _chunk_xor(address: int, swizzle: int) -> int:
    """Return what the hardware XORs to an address: bits 7.. onto bits 4.., as many as the swizzle has chunk bits."""
    if swizzle == 0:
        return 0
    return (address >> 7 & (swizzle // CHUNK_BYTES - 1)) << 4


def _uniform(columns: tuple[int, ...], default: int) -> int | None:
    """Return the step d of columns d, 2d, 4d, …, `default` if there are none, or None if they are no such series."""
    if not columns:
        return default
    step = columns[0]
    return step if all(c == step << i for i, c in enumerate(columns)) else None


#: The largest extent of a TMA box in each dimension.
MAX_BOX = 256


@dataclass(frozen=True)
class TmaBoxes:
    """The copies that fill a buffer: boxes of one shape under one swizzle (bytes, 0 for none).

    Each part is (coordinates of its first element in the tile, byte offset in the buffer).
    """

    swizzle: int
    box: tuple[int, ...]
    parts: tuple[tuple[tuple[int, ...], int], ...]


@lru_cache(maxsize=1024)
def tma_boxes(shared: SharedLayout, element_bits: int, rows: int = MAX_BOX) -> TmaBoxes | None:
    """Return the boxes by which TMA copies a buffer to or from a tensor whose last dimension is contiguous, or None if it cannot.

    A buffer under a swizzle starts at a multiple of 1024 bytes, others at one of 128. A box has at most `rows` of the first dimension.
    """
    if shared.padding is not None:
        return None
    shape, size = shared.shape, element_bits // 8
    for swizzle in (0, *SWIZZLES):
        inner = swizzle // size if swizzle else min(shape[-1], MAX_BOX)
        if inner > shape[-1] or inner * size % CHUNK_BYTES:
            continue
        if shared == (nvmma(shape, element_bits, swizzle) if swizzle else column_blocks(shape, inner)):
            box = (*(min(s, MAX_BOX) for s in shape[:-1]), inner)
            if len(box) > 1:
                box = (min(box[0], rows), *box[1:])
            if box[1:-1] != shape[1:-1]:
                return None  # a box that is cut there would not be contiguous in the buffer
            columns = shared.address_columns()
            starts = product(*(range(0, s, b) for s, b in zip(shape, box, strict=True)))
            parts = tuple((start, f2.apply(columns, shared.linear.pack(start)) * size) for start in starts)
            # The hardware takes the swizzle from the address, so every box must start where the pattern does.
            if not any(offset % max(128, 8 * swizzle) for _, offset in parts):
                return TmaBoxes(swizzle, box, parts)
    return None


@lru_cache(maxsize=1024)
def tma_layout(shape: tuple[int, ...], element_bits: int, swizzled: bool) -> SharedLayout | None:
    """Return a layout for a buffer that TMA can copy, with the widest swizzle that fits if `swizzled`, or None if it has no such layout."""
    plain = column_blocks(shape, min(shape[-1], MAX_BOX))
    for shared in (nvmma(shape, element_bits), plain) if swizzled else (plain, nvmma(shape, element_bits)):
        if tma_boxes(shared, element_bits) is not None:
            return shared
    return None
