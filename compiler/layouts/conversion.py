"""What a conversion between two distributed layouts needs: nothing, registers, shuffles, or shared memory, and the plan for each.

A conversion is described by a map from the destination's inputs to the source's: where each element is read from. Columns are flat
indices over (register, lane, warp, block) of the source, one column for each input bit of the destination.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from . import f2
from .banks import BANK_ROW_BYTES, bank_conflicts, vector_basis
from .core import LinearLayout
from .shape_ops import conversion_columns, drop_register_copies, register_sources

KINDS = ("identity", "register", "warp", "block", "cluster")


@lru_cache(maxsize=8192)
def conversion_kind(src: LinearLayout, dst: LinearLayout) -> str:
    """Return how far data moves: "identity" (same registers), "register" (within each thread), "warp", "block" (CTA) or "cluster"."""
    if src == dst or src.equal_up_to(dst):
        return "identity"
    if register_sources(src, dst) is not None:
        return "register"
    if conversion_columns(src, dst, ("warp", "block")) is not None:
        return "warp"
    # CTAs exchange nothing only if both sides give each of them the same part of the tensor.
    inside = src.column("block") == dst.column("block") and conversion_columns(src, dst, ("block",)) is not None
    return "block" if inside else "cluster"


@dataclass(frozen=True)
class ShufflePlan:
    """A conversion inside each warp in three steps, each linear in the register index and `thread`, the bits of lane, warp and block.

    1. `x1[i] = x[i ^ pre(thread)]`: registers change places inside the thread, by selects.
    2. `y1[r] = x1[source[r]]` read from the lane `lane_of_register(r) ^ lane_of_thread(thread)`: one shuffle for each r.
    3. `y[r] = y1[r ^ post(lane)]`: selects again.

    `pre`, `lane_of_thread` have one column for each thread bit, `post` one for each lane bit, `source` and `lane_of_register` one for each
    destination register bit. `expand` gives for each destination register the r that holds its element.
    """

    pre: f2.Matrix
    source: f2.Matrix
    lane_of_register: f2.Matrix
    lane_of_thread: f2.Matrix
    post: f2.Matrix
    expand: tuple[int, ...]

    @property
    def registers(self) -> int:
        """Number of distinct destination registers: the number of shuffles before packing."""
        return 1 << len(self.source)

    @property
    def same_lane(self) -> bool:
        """Whether register 0 is read from the own lane, so that lanes are exchanged by XOR with a constant for each register."""
        lanes = len(self.post)
        return self.lane_of_thread[:lanes] == f2.identity(lanes) and not any(self.lane_of_thread[lanes:])

    def packable_bits(self) -> tuple[tuple[int, int], ...]:
        """Return (destination bit, source bit) pairs of registers that move together unchanged: neighbours may share a 32-bit word."""
        pairs = []
        for bit, col in enumerate(self.source):
            if col.bit_count() != 1 or self.lane_of_register[bit]:
                continue
            moved = any(c & col for c in self.pre) or any(c >> bit & 1 for c in self.post)
            if not moved and all(not c & col for i, c in enumerate(self.source) if i != bit):
                pairs.append((bit, col.bit_length() - 1))
        return tuple(pairs)


@lru_cache(maxsize=4096)
def shuffle_plan(src: LinearLayout, dst: LinearLayout) -> ShufflePlan | None:
    """Return the plan of a conversion that stays in each warp, or None if it does not (or not in one shuffle for each register)."""
    unique = drop_register_copies(dst)
    columns = conversion_columns(src, unique, ("warp", "block"))
    if columns is None:
        return None
    reg_bits, lane_bits = src.in_bits("register"), src.in_bits("lane")
    out_regs, out_lanes = unique.in_bits("register"), unique.in_bits("lane")
    reg_mask, lane_mask = (1 << reg_bits) - 1, (1 << lane_bits) - 1
    regs = [c & reg_mask for c in columns]
    lanes = [(c >> reg_bits) & lane_mask for c in columns]
    a, c = regs[:out_regs], lanes[:out_regs]
    b, d = regs[out_regs : out_regs + out_lanes], lanes[out_regs : out_regs + out_lanes]
    solved = _split_shuffle(a, b, c, d, reg_bits, lane_bits)
    if solved is None:
        return None
    p, q = solved
    source = tuple(x ^ f2.apply(p, y) for x, y in zip(a, c, strict=True))
    lane_of_lane = tuple(x ^ f2.apply(c, y) for x, y in zip(d, q, strict=True))
    outer_regs, outer_lanes = regs[out_regs + out_lanes :], lanes[out_regs + out_lanes :]
    pre = (*p, *(x ^ f2.apply(p, y) for x, y in zip(outer_regs, outer_lanes, strict=True)))
    expand = register_sources(unique, dst)
    return ShufflePlan(pre, source, tuple(c), lane_of_lane + tuple(outer_lanes), tuple(q), expand)


def _split_shuffle(a, b, c, d, reg_bits: int, lane_bits: int) -> tuple[list[int], f2.Matrix] | None:
    """Find P and Q with (A + P C) Q + P D = B, where a destination (r, l) reads register A r + B l of lane C r + D l."""
    zero = [0] * lane_bits
    q = f2.solve(a, b)
    if q is not None:
        return zero, q
    # Give the registers that A merges, and that C tells apart by lane, source registers of their own.
    missing = list(f2.complement(a, reg_bits))
    lane_basis, images = [], []
    echelon = f2.Echelon()
    for x in f2.kernel(a):
        lane = f2.apply(c, x)
        if missing and echelon.insert(lane):
            lane_basis.append(lane)
            images.append(missing.pop(0))
    rest = f2.complement(lane_basis, lane_bits)
    units = f2.solve([*lane_basis, *rest], f2.identity(lane_bits))
    images += [0] * len(rest)
    p = [f2.apply(images, x) for x in units]
    a1 = [x ^ f2.apply(p, y) for x, y in zip(a, c, strict=True)]
    q = f2.solve(a1, [x ^ f2.apply(p, y) for x, y in zip(b, d, strict=True)])
    return None if q is None else (p, q)


@dataclass(frozen=True)
class ScratchPlan:
    """A conversion through shared memory.

    The tensor goes through in `rounds`: in round c each thread stores its source registers r with `src_round(r) == c`, waits, and loads the
    destination registers with `dst_round(r) == c`. `src_columns` and `dst_columns` are the element offsets of all input bits of the
    layouts `src` and `dst`, which are free of register copies: `unique[r]` is the given source's register for register r of `src`, and
    `expand[r]` the register of `dst` for register r of the wanted destination.
    """

    src: LinearLayout
    dst: LinearLayout
    src_columns: f2.Matrix
    dst_columns: f2.Matrix
    src_round: f2.Matrix
    dst_round: f2.Matrix
    elements: int
    unique: tuple[int, ...]
    expand: tuple[int, ...]

    @property
    def rounds(self) -> int:
        """Number of passes through the buffer."""
        return 1 << max((c.bit_length() for c in self.src_round), default=0)


@lru_cache(maxsize=2048)
def scratch_plan(src: LinearLayout, dst: LinearLayout, element_bytes: int, limit_bytes: int) -> ScratchPlan:
    """Return the plan of a conversion inside a CTA through at most `limit_bytes` of shared memory, if the layouts let it be cut that fine.

    The buffer's layout makes the longest register runs that both sides share contiguous, up to 16 bytes, prefers runs of the side with the
    longer ones, and spreads the lanes of each access over the banks on both sides where that is possible.
    """
    unique_src, unique_dst = drop_register_copies(src), drop_register_copies(dst)
    out_bits = src.out_bits
    functionals = _round_functionals(unique_src, unique_dst, max(0, (out_bits - _log2_floor(limit_bytes // element_bytes))))
    # Coordinates inside a round are a subspace; `section` holds a basis of it.
    section = _kernel_of_functionals(functionals, out_bits)
    offsets = _scratch_basis(unique_src, unique_dst, section, element_bytes)
    # Coordinate = round representative ^ element of the section: solve both at once, offset bits first.
    representatives = f2.complement(offsets, out_bits)
    unit_offsets = f2.solve([*offsets, *representatives], f2.identity(out_bits))
    mask = (1 << len(offsets)) - 1

    def split(layout: LinearLayout) -> tuple[f2.Matrix, f2.Matrix]:
        cols = layout.flat
        places = tuple(f2.apply(unit_offsets, c) & mask for c in cols)
        rounds = tuple(sum(((c & f).bit_count() & 1) << i for i, f in enumerate(functionals)) for c in layout.column("register"))
        return places, rounds

    src_columns, src_round = split(unique_src)
    dst_columns, dst_round = split(unique_dst)
    unique, expand = register_sources(src, unique_src), register_sources(unique_dst, dst)
    return ScratchPlan(unique_src, unique_dst, src_columns, dst_columns, src_round, dst_round, 1 << len(offsets), unique, expand)


def _log2_floor(n: int) -> int:
    return max(0, n.bit_length() - 1)


def _round_functionals(src: LinearLayout, dst: LinearLayout, wanted: int) -> list[int]:
    """Return up to `wanted` linear functionals (masks) on coordinates that only registers influence on both sides.

    Functionals of single coordinate bits come first, from the slowest dimension down, so that rounds are simple blocks of the tensor.
    """
    if wanted <= 0:
        return []
    fixed = [c for layout in (src, dst) for name in ("lane", "warp", "block") for c in layout.column(name)]
    bits = src.out_bits
    rows = f2.transpose(fixed, bits)
    candidates = f2.kernel(rows)
    candidates = sorted(candidates, key=lambda m: (m.bit_count(), -m))
    chosen: list[int] = []
    echelon = f2.Echelon()
    for mask in candidates:
        if len(chosen) < wanted and echelon.insert(mask):
            chosen.append(mask)
    return chosen


def _kernel_of_functionals(functionals: list[int], bits: int) -> f2.Matrix:
    """Return a basis of the vectors on which all functionals vanish."""
    images = [sum(((1 << b & f) != 0) << i for i, f in enumerate(functionals)) for b in range(bits)]
    return f2.kernel(images)


def intersection(a: f2.Matrix, b: f2.Matrix) -> f2.Matrix:
    """Return a basis of the intersection of two column spans."""
    basis_a, basis_b = f2.image(a), f2.image(b)
    relations = f2.kernel([*basis_a, *basis_b])
    mask = (1 << len(basis_a)) - 1
    return tuple(f2.apply(basis_a, x & mask) for x in relations)


def _in_section(cols: f2.Matrix, section: f2.Matrix, bits: int) -> f2.Matrix:
    """Return a basis of the part of a span that lies in the section; unit columns of the span itself come first, in order."""
    inside = f2.Echelon(section)
    direct = [c for c in cols if inside.solve(c) is not None]
    echelon = f2.Echelon()
    out = [c for c in direct if c and echelon.insert(c)]
    out += [c for c in intersection(cols, section) if echelon.insert(c)]
    return tuple(out)


def _scratch_basis(src: LinearLayout, dst: LinearLayout, section: f2.Matrix, element_bytes: int) -> list[int]:
    """Return the coordinates of the offset bits of the buffer: vector bits, then bank bits, then rows of all banks.

    The register runs that both sides share come lowest. One side may extend them with runs of its own: it then uses wider accesses, and the
    other narrow ones into the same words. The cheapest of these extensions is taken.
    """
    bits = src.out_bits
    regs = [_in_section(layout.column("register"), section, bits) for layout in (src, dst)]
    widest = _log2_floor(max(1, 16 // element_bytes))
    both = f2.Echelon(regs[1])
    common = [c for c in regs[0] if both.solve(c) is not None]
    common += [c for c in intersection(regs[0], regs[1]) if f2.rank([*common, c]) > len(common)]
    vector = common[:widest]
    best = None
    for broad in (1, 0):
        extra = _extension(vector, regs[broad], widest - len(vector))
        narrow = (src, dst)[1 - broad]
        # Four neighbouring lanes fill one 16-byte row with a word each: ldmatrix and stmatrix do that in one access.
        matrix = element_bytes << len(vector) == 4 and len(extra) == 2 and tuple(extra) == narrow.column("lane")[:2]
        for length in (len(extra),) if matrix else range(len(extra) + 1):
            basis = _basis_with(src, dst, section, element_bytes, vector, extra[:length], broad, matrix)
            cost = _access_cost(src, dst, basis, element_bytes, broad, matrix)
            if best is None or cost < best[0]:
                best = cost, basis
        if matrix:
            break
    return best[1]


def _basis_with(src, dst, section, element_bytes: int, vector: list[int], extra: list[int], broad: int, matrix: bool) -> list[int]:
    """Build the basis of `_scratch_basis` for one extension of the vector, which side `broad` (0: src, 1: dst) makes."""
    low = [*vector, *extra]
    lanes = _in_section((*dst.column("lane"), *src.column("lane")), section, src.out_bits)
    # Elements narrower than a word share one, with the vector's lowest elements or else with a neighbouring lane's.
    in_word = _log2_floor(max(1, 4 // element_bytes))
    low += _extension(low, lanes, in_word - len(low))
    spans, phases = [], []
    for side, layout in enumerate((src, dst)):
        wide = side == broad or matrix
        run = [*vector, *extra] if wide else vector
        taking = layout.column("lane")[2 if matrix and side != broad else 0 :]
        taking = taking[: _phase_lanes(element_bytes << len(run), len(taking))]
        phases.append(taking)
        spans.append(f2.image([*run, *low[:in_word], *taking]))
    rows = max(0, len(section) - _log2_floor(max(1, BANK_ROW_BYTES // element_bytes)))
    high = _row_bits(spans, phases, section, low, rows)
    echelon = f2.Echelon([*high, *low])
    banks = [c for c in (*lanes, *section) if echelon.insert(c)]
    return [*low, *banks, *high]


def _access_cost(src, dst, basis: list[int], element_bytes: int, broad: int, matrix: bool) -> float:
    """Return the cycles of shared memory that a thread's registers take, plus the instructions, on both sides together."""
    total = 0.0
    mask = (1 << len(basis)) - 1
    rest = f2.Echelon([*basis, *f2.complement(basis, src.out_bits)])
    for side, layout in enumerate((src, dst)):
        columns = {n: tuple(rest.solve(c) & mask for c in cols) for n, cols in zip(layout.names, layout.columns, strict=True)}
        others = tuple(c for n, cols in columns.items() if n != "register" for c in cols)
        by_matrix = matrix and side != broad
        width = 16 // element_bytes if by_matrix else 1 << len(vector_basis(columns["register"], others, 16 // element_bytes)[0])
        lanes = columns["lane"][2:] if by_matrix else columns["lane"]
        size = width * element_bytes
        total += layout.in_size("register") / width * (1 + max(1, size // 4) * bank_conflicts(lanes, size, element_bytes))
    return total


def _extension(vector: list[int], side: f2.Matrix, room: int) -> list[int]:
    echelon = f2.Echelon(vector)
    return [c for c in side if echelon.insert(c)][: max(0, room)]


def _phase_lanes(vector_bytes: int, lane_bits: int) -> int:
    """Return how many of the lane bits take part in one shared-memory cycle: 8 lanes at 16 bytes, 16 at 8 bytes, all at 4 or less."""
    return min(lane_bits, _log2_floor(BANK_ROW_BYTES // max(4, vector_bytes)))


def _row_bits(spans: list[f2.Matrix], lanes: list[f2.Matrix], section: f2.Matrix, low: list[int], count: int) -> list[int]:
    """Return `count` vectors of the section whose span meets neither of the two `spans`, as far as possible, nor `low`.

    Lanes of one access then never differ in the row alone, so they meet different banks (the construction of the paper's optimal swizzle):
    sums of a lane of one side and a lane of the other lie in neither span.
    """
    echelon = f2.Echelon([*spans[0], *spans[1], *low])
    high = [c for c in section if echelon.insert(c)]
    only = [_extension([*spans[1 - side], *low], lanes[side], len(lanes[side])) for side in (0, 1)]
    inside = f2.Echelon(section)
    high += [x ^ y for x, y in zip(*only, strict=False) if inside.solve(x ^ y) is not None]
    free = f2.Echelon(low)
    high = [c for c in high if free.insert(c)][:count]
    # Conflicts that no layout avoids: take any vectors that are left.
    high += [c for c in section if free.insert(c)][: count - len(high)]
    return high
