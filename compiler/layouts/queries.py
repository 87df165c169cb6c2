"""Answers that code generation derives from layouts: vector widths, bank conflicts, copies."""

from __future__ import annotations

from functools import lru_cache

from . import f2
from .banks import bank_conflicts, vector_basis
from .core import LinearLayout
from .shared import SharedLayout


@lru_cache(maxsize=8192)
def contiguous_registers(layout: LinearLayout, dim: int, limit: int) -> tuple[int, ...]:
    """Return the register bits that step by 1, 2, 4, … elements along `dim`, at most log2(`limit`) of them.

    Registers that differ in these bits are neighbours in memory if `dim` is contiguous there. No other input may move inside such a run,
    so that each run starts at a multiple of its length.
    """
    bits: list[int] = []
    cols = layout.column("register")
    shift = layout.shifts[dim]
    while 2 << len(bits) <= limit:
        target = (1 << len(bits)) << shift
        if target not in cols or layout.out_sizes[dim] < 2 << len(bits):
            break
        if sum(1 for c in layout.flat if c & target) != 1:
            break
        bits.append(cols.index(target))
    return tuple(bits)


@lru_cache(maxsize=8192)
def vector_width(layout: LinearLayout, dim: int, alignment: int, element_bits: int, max_bits: int = 128) -> int:
    """Return the elements of one global access: neighbours along `dim`, aligned to `alignment` elements, `max_bits` bits at most."""
    limit = min(alignment, max(1, max_bits // element_bits))
    limit = 1 << (limit.bit_length() - 1)
    return 1 << len(contiguous_registers(layout, dim, limit))


@lru_cache(maxsize=8192)
def register_order(bits: tuple[int, ...], total: int) -> tuple[int, ...]:
    """Return the registers so that those that differ only in `bits` stand in runs: position i holds register `order[i]`."""
    rest = tuple(b for b in range(total) if b not in bits)
    cols = [1 << b for b in (*bits, *rest)]
    return tuple(f2.apply(cols, i) for i in range(1 << total))


@lru_cache(maxsize=8192)
def shared_columns(layout: LinearLayout, shared: SharedLayout) -> dict[str, f2.Matrix]:
    """Return for each input of a distributed layout the linear element offsets in the buffer of its bits."""
    if layout.out_sizes != shared.shape:
        raise ValueError(f"a tensor of shape {layout.out_sizes} does not fit a buffer of shape {shared.shape}")
    address = shared.address_columns()
    return {name: f2.matmul(address, cols) for name, cols in zip(layout.names, layout.columns, strict=True)}


@lru_cache(maxsize=8192)
def shared_vector_width(layout: LinearLayout, shared: SharedLayout, element_bits: int, max_bits: int = 128) -> int:
    """Return the number of elements that one shared-memory access of a thread moves."""
    limit = max(1, max_bits // element_bits)
    if shared.padding:
        # Runs must neither cross a padding nor be misaligned by one.
        limit = min(limit, *shared.padding)
    columns = shared_columns(layout, shared)
    return 1 << len(vector_basis(columns["register"], tuple(c for n, cols in columns.items() if n != "register" for c in cols), limit)[0])


@lru_cache(maxsize=8192)
def shared_conflicts(layout: LinearLayout, shared: SharedLayout, element_bits: int) -> int:
    """Return the bank-conflict factor of a vectorized access of a tensor to a buffer without padding (1: none)."""
    if shared.padding:
        raise ValueError("bank conflicts of padded layouts are not linear; use count_bank_conflicts")
    vector = shared_vector_width(layout, shared, element_bits)
    element_bytes = max(1, element_bits // 8)
    return bank_conflicts(shared_columns(layout, shared)["lane"], vector * element_bytes, element_bytes)


@lru_cache(maxsize=1024)
def without_conflicts(layout: LinearLayout, shared: SharedLayout, element_bits: int) -> LinearLayout:
    """Return the layout, or one in which half of the lanes hold their elements in other registers, by which an access of a tensor to a
    buffer has fewer bank conflicts: some lanes write one row while others write another. Only selects lead from one to the other."""
    best, least = layout, shared_conflicts(layout, shared, element_bits)
    width = shared_vector_width(layout, shared, element_bits)
    lanes, registers = layout.bases["lane"], layout.bases["register"]
    for number, lane in enumerate(lanes) if least > 1 else ():
        for register in registers:
            moved = tuple(a ^ b for a, b in zip(lane, register, strict=True))
            bases = {**layout.bases, "lane": [*lanes[:number], moved, *lanes[number + 1 :]]}
            other = LinearLayout(bases, layout.out_sizes)
            conflicts = shared_conflicts(other, shared, element_bits)
            if any(register) and conflicts < least and shared_vector_width(other, shared, element_bits) == width:
                best, least = other, conflicts
    return best


@lru_cache(maxsize=8192)
def store_masks(layout: LinearLayout) -> tuple[int, int, int, int]:
    """Return the masks of redundant (register, lane, warp, block) bits: an element is stored once if all of them are zero."""
    masks = layout.free_masks()
    return tuple(masks.get(name, 0) for name in ("register", "lane", "warp", "block"))


@lru_cache(maxsize=8192)
def is_replicated(layout: LinearLayout) -> bool:
    """Whether several threads hold the same element."""
    return any(store_masks(layout)[1:])


@lru_cache(maxsize=8192)
def dim_order(layout: LinearLayout) -> tuple[int, ...]:
    """Return the dimensions from the one that registers and then lanes walk first: the layout's idea of contiguity."""
    first: dict[int, int] = {}
    position = 0
    for bases in layout.bases.values():
        for coords in bases:
            for dim, coord in enumerate(coords):
                if coord:
                    first.setdefault(dim, position)
            position += 1
    return tuple(sorted(range(layout.rank), key=lambda d: (first.get(d, 1 << 30), -d)))


@lru_cache(maxsize=8192)
def extent_per_thread(layout: LinearLayout, dim: int) -> int:
    """Return the number of distinct coordinates along `dim` that a thread holds."""
    shift, size = layout.shifts[dim], layout.out_sizes[dim]
    return 1 << f2.rank((c >> shift) & (size - 1) for c in layout.column("register"))
