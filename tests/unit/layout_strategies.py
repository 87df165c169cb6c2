"""Hypothesis strategies and brute-force helpers for linear layouts."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from tilewright.compiler.layouts import LinearLayout

NAMES = ("register", "lane", "warp", "block")


@st.composite
def shapes(draw, max_bits: int = 7, max_rank: int = 3):
    rank = draw(st.integers(1, max_rank))
    bits = [draw(st.integers(0, max_bits // rank + 1)) for _ in range(rank)]
    return tuple(1 << b for b in bits)


@st.composite
def layouts(draw, shape=None, in_bits=(3, 3, 2, 0)):
    """Any map at all: bases are arbitrary coordinates."""
    shape = draw(shapes()) if shape is None else shape
    coordinate = st.tuples(*[st.integers(0, s - 1) for s in shape])
    return LinearLayout({n: draw(st.lists(coordinate, min_size=b, max_size=b)) for n, b in zip(NAMES, in_bits, strict=True)}, shape)


@st.composite
def distributed(draw, shape, lane_bits: int = 3, warp_bits: int = 1, copies: bool = True):
    """A surjective layout: a random invertible map of the coordinate bits, dealt out over registers, lanes and warps, with copies."""
    total = sum(s.bit_length() - 1 for s in shape)
    columns = [1 << i for i in range(total)]
    columns = list(draw(st.permutations(columns)))
    for _ in range(draw(st.integers(0, 3))):
        if total > 1:
            i, j = draw(st.integers(0, total - 1)), draw(st.integers(0, total - 1))
            if i != j:
                columns[i] ^= columns[j]
    thread = lane_bits + warp_bits
    used = min(total, thread)
    if copies:
        used = draw(st.integers(0, used))
    slots = [0] * thread
    for position, col in zip(draw(st.permutations(range(thread)))[:used], columns[:used], strict=True):
        slots[position] = col
    registers = columns[used:]
    if copies and draw(st.booleans()):
        registers = registers + [0]
    parts = {"register": registers, "lane": slots[:lane_bits], "warp": slots[lane_bits:], "block": []}
    return LinearLayout.from_columns(parts, shape)


def flat_index(layout: LinearLayout, **indices: int) -> int:
    out, shift = 0, 0
    for name, bits in layout.in_bits_dict.items():
        out |= indices.get(name, 0) << shift
        shift += bits
    return out


def inputs(layout: LinearLayout):
    """Every index of a layout as a dict."""
    sizes = [layout.in_size(n) for n in layout.names]
    for values in product(*[range(s) for s in sizes]):
        yield dict(zip(layout.names, values, strict=True))
