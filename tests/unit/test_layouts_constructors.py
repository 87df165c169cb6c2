"""Constructors of layouts against the element positions that the instruction manuals give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout_strategies import layouts, shapes

from tilewright.compiler import layouts as L

pow2 = st.sampled_from([1, 2, 4, 8])


@given(st.data())
def test_blocked_against_index_arithmetic(data):
    rank = data.draw(st.integers(1, 3))
    shape, spt, tpw, wpc = (tuple(data.draw(pow2) for _ in range(rank)) for _ in range(4))
    order = tuple(data.draw(st.permutations(range(rank))))
    layout = L.blocked(shape, spt, tpw, wpc, order)

    def unflatten(index, counts):
        out = [0] * rank
        for dim in order:
            out[dim] = index % counts[dim]
            index //= counts[dim]
        return out

    # Coverage: every element is held, and lane/warp positions follow the block structure modulo the shape.
    assert layout.is_surjective
    for lane in range(layout.in_size("lane")):
        for warp in range(layout.in_size("warp")):
            thread = [w * t + i for w, t, i in zip(unflatten(warp, wpc), tpw, unflatten(lane, tpw), strict=True)]
            expected = tuple((i * s) % n for i, s, n in zip(thread, spt, shape, strict=True))
            assert layout(lane=lane, warp=warp) == expected


def test_blocked_splits_over_the_cluster():
    layout = L.blocked((64, 32), (1, 4), (4, 8), (4, 1), (1, 0), (2, 1))
    assert layout.bases["block"] == ((32, 0),)
    assert layout.is_surjective and layout.is_injective


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_mma_operand_fragments_follow_the_ptx_manual(bits):
    packed, k = 32 // bits, 256 // bits
    a = L.mma_operand((16, k), (1, 1), bits, 0)
    b = L.mma_operand((k, 8), (1, 1), bits, 1)
    for lane in range(32):
        group, thread = lane >> 2, lane & 3
        for i in range(4 * packed):
            word, part = divmod(i, packed)
            row = group + 8 * (word & 1)
            col = thread * packed + part + 4 * packed * (word >> 1)
            assert a(register=i, lane=lane) == (row, col)
        for i in range(2 * packed):
            word, part = divmod(i, packed)
            assert b(register=i, lane=lane) == (thread * packed + part + 4 * packed * word, group)


def test_mma_accumulators():
    acc = L.mma_accumulator((16, 8), (1, 1))
    f64 = L.mma_accumulator((8, 8), (1, 1), 64)
    for lane in range(32):
        for i in range(4):
            assert acc(register=i, lane=lane) == ((lane >> 2) + 8 * (i >> 1), (lane & 3) * 2 + (i & 1))
        for i in range(2):
            assert f64(register=i, lane=lane) == (lane >> 2, (lane & 3) * 2 + i)
        assert L.mma_operand((8, 4), (1, 1), 64, 0)(lane=lane) == (lane >> 2, lane & 3)
        assert L.mma_operand((4, 8), (1, 1), 64, 1)(lane=lane) == (lane & 3, lane >> 2)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("shape", [(64, 16), (64, 256), (128, 64), (256, 128)])
def test_wgmma_accumulator_follows_the_ptx_manual(shape, num_warps):
    acc = L.wgmma_accumulator(shape, num_warps)
    groups_n = num_warps // 4 if shape[0] == 64 else 1
    cols = shape[1] // groups_n
    for warp in range(num_warps):
        for lane in (0, 1, 5, 31):
            for i in range(0, cols // 2, 3):
                group = warp >> 2
                row = (warp & 3) * 16 + (lane >> 2) + 8 * (i >> 1 & 1) + (0 if groups_n > 1 else 64 * group)
                col = (i >> 2) * 8 + (lane & 3) * 2 + (i & 1) + (cols * group if groups_n > 1 else 0)
                assert acc(register=i, lane=lane, warp=warp) == (row, col)
    assert acc.is_surjective and acc.is_injective


def test_wgmma_register_operand_matches_the_accumulator_for_16_bits():
    # The P of attention: the accumulator's registers are the A fragment without any move.
    assert L.wgmma_operand_a((64, 64), 4, 16) == L.wgmma_accumulator((64, 64), 4)
    assert L.conversion_kind(L.wgmma_accumulator((64, 64), 4), L.wgmma_operand_a((64, 64), 4, 8)) == "warp"


@pytest.mark.parametrize(
    ("shape", "warps", "expected"), [((64, 512), 8, (64, 256, 16)), ((128, 128), 8, (64, 128, 16)), ((64, 16), 8, (64, 8, 16))]
)
def test_wgmma_instruction(shape, warps, expected):
    assert L.wgmma_instruction(shape, warps, 16) == expected


def test_mfma_and_wmma_accumulators():
    wide, small = L.mfma_accumulator((32, 32), (1, 1), (32, 32)), L.mfma_accumulator((16, 16), (1, 1), (16, 16))
    f64 = L.mfma_accumulator((16, 16), (1, 1), (16, 16), is_f64=True)
    for lane in range(64):
        for i in range(16):
            assert wide(register=i, lane=lane) == (8 * (i // 4) + 4 * (lane // 32) + i % 4, lane % 32)
        for i in range(4):
            assert small(register=i, lane=lane) == (4 * (lane // 16) + i, lane % 16)
            assert f64(register=i, lane=lane) == (4 * i + lane // 16, lane % 16)
    for lane in range(32):
        for i in range(8):
            assert L.wmma_accumulator((16, 16), (1, 1), 1)(register=i, lane=lane) == (2 * i + lane // 16, lane % 16)
            assert L.wmma_accumulator((16, 16), (1, 1), 2)(register=i, lane=lane) == (8 * (lane // 16) + i, lane % 16)
    assert L.trans(L.mfma_accumulator((32, 32), (1, 1), (32, 32)), (1, 0)) == L.mfma_accumulator((32, 32), (1, 1), (32, 32), True)


@pytest.mark.parametrize(("outer", "k_width", "k"), [(32, 4, 8), (16, 4, 16), (16, 8, 32), (32, 8, 16)])
def test_mfma_operands(outer, k_width, k):
    a = L.mfma_operand((outer, k), (1, 1), outer, k_width, 0)
    b = L.mfma_operand((k, outer), (1, 1), outer, k_width, 1)
    for lane in range(64):
        for i in range(k_width):
            assert a(register=i, lane=lane) == (lane % outer, lane // outer * k_width + i)
            assert b(register=i, lane=lane) == (lane // outer * k_width + i, lane % outer)


def test_wmma_operands():
    rdna3, rdna4 = L.wmma_operand((16, 16), (1, 1), 1, 0), L.wmma_operand((16, 16), (1, 1), 2, 0)
    for lane in range(32):
        assert [rdna3(register=i, lane=lane) for i in range(16)] == [(lane % 16, i) for i in range(16)]
        assert [rdna4(register=i, lane=lane) for i in range(8)] == [(lane % 16, lane // 16 * 8 + i) for i in range(8)]


def test_warps_hold_contiguous_parts_or_copies():
    acc = L.mma_accumulator((64, 32), (2, 2))
    assert acc.bases["warp"] == ((0, 16), (32, 0))
    a = L.mma_operand((64, 32), (2, 2), 16, 0)
    assert a.bases["warp"] == ((0, 0), (32, 0))
    small = L.mma_accumulator((16, 8), (2, 2))
    assert small.bases["warp"] == ((0, 0), (0, 0))


@given(st.data())
def test_shape_operations(data):
    layout = data.draw(layouts(shape=data.draw(shapes(5, 3)), in_bits=(2, 2, 1, 0)))
    tensor = np.arange(np.prod(layout.out_sizes)).reshape(layout.out_sizes)
    order = tuple(data.draw(st.permutations(range(layout.rank))))
    axis = data.draw(st.integers(0, layout.rank))
    flat = (tensor.size,)
    moved, expanded, reshaped, joined = L.trans(layout, order), L.expand_dims(layout, axis), L.reshape(layout, flat), L.join(layout)
    for reg in range(4):
        for lane in range(4):
            value = tensor[layout(register=reg, lane=lane, warp=1)]
            assert tensor.transpose(order)[moved(register=reg, lane=lane, warp=1)] == value
            assert np.expand_dims(tensor, axis)[expanded(register=reg, lane=lane, warp=1)] == value
            assert tensor.reshape(flat)[reshaped(register=reg, lane=lane, warp=1)] == value
            assert joined(register=2 * reg + 1, lane=lane, warp=1) == (*layout(register=reg, lane=lane, warp=1), 1)
    assert L.split(joined) == layout and L.trans(moved, L.inverse_permutation(order)) == layout


@given(st.data())
def test_slices_and_broadcasts_against_numpy(data):
    layout = data.draw(layouts(shape=data.draw(shapes(6, 3)), in_bits=(3, 2, 1, 0)))
    axis = data.draw(st.integers(0, layout.rank - 1))
    kept = L.slice_dim(layout, axis, True)
    for reg in range(8):
        coords = layout(register=reg, lane=3, warp=1)
        assert kept(register=reg, lane=3, warp=1) == coords[:axis] + coords[axis + 1 :]
    held = {kept(register=r, lane=1) for r in range(8)}
    few = L.slice_dim(layout, axis)
    registers = [few(register=r, lane=1) for r in range(few.in_size("register"))]
    assert set(registers) == held and len(registers) == len(held)
    # A source of the broadcast holds, in each thread, the element that every register of the result repeats.
    flat = tuple(1 if d == axis else s for d, s in enumerate(layout.out_sizes))
    source = L.broadcast_source(layout, flat)
    for lane in range(4):
        mine = {source(register=r, lane=lane) for r in range(source.in_size("register"))}
        assert mine == {tuple(0 if d == axis else c for d, c in enumerate(layout(register=r, lane=lane))) for r in range(8)}
    wide = L.broadcast_result(source, layout.out_sizes)
    for lane in range(4):
        mine = {wide(register=r, lane=lane) for r in range(wide.in_size("register"))}
        narrow = {source(register=r, lane=lane) for r in range(source.in_size("register"))}
        want = {(*c[:axis], i, *c[axis + 1 :]) for c in narrow for i in range(layout.out_sizes[axis])}
        assert mine == want


def test_slice_and_broadcast():
    layout = L.blocked((16, 32), (1, 4), (4, 8), (4, 1), (1, 0))
    row = L.slice_dim(layout, 1)
    assert row.out_sizes == (16,) and row.bases["register"] == () and row.bases["lane"][:3] == ((0,), (0,), (0,))
    column = L.broadcast_source(layout, (16, 1))
    assert L.expand_dims(row, 1) == column
    wide = L.broadcast_result(column, (16, 32))
    assert wide.is_surjective and L.register_sources(column, L.broadcast_source(wide, (16, 1))) == (0,)
    assert L.concatenate(row, 0).bases["register"] == ((16,),)


@pytest.mark.parametrize("swizzle", [128, 64, 32])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_tma_swizzle_is_the_address_xor(swizzle, bits):
    """TMA exchanges 16-byte chunks: address bits 4.. are XORed with bits 7.. (3, 2, 1 bits for 128, 64, 32 bytes)."""
    size = bits // 8
    span, rows = swizzle // size, 32
    shape = (rows, 2 * span)
    shared = L.nvmma(shape, bits, swizzle)
    mask = swizzle // 16 - 1
    for row in range(rows):
        for col in range(0, 2 * span, 3):
            sub, inner = divmod(col, span)
            plain = sub * rows * swizzle + row * swizzle + inner * size
            address = plain ^ ((plain >> 7 & mask) << 4)
            assert shared.linear(offset=address // size) == (row, col)
    assert L.nvmma(shape[::-1], bits, swizzle, (0, 1)).linear == L.trans(shared.linear, (1, 0))


@given(st.data())
def test_xor_swizzle_formula(data):
    rows, cols = data.draw(st.sampled_from([4, 16])), data.draw(st.sampled_from([8, 32]))
    vec, per_phase, max_phase = data.draw(pow2), data.draw(pow2), data.draw(pow2)
    if vec * max_phase > cols:
        return
    shared = L.swizzled((rows, cols), vec, per_phase, max_phase)
    for r in range(rows):
        for c in range(cols):
            phase = (r // per_phase) % max_phase
            place = r * cols + ((c // vec) ^ phase) * vec + c % vec
            assert shared.linear(offset=place) == (r, c)
    assert shared.order == (1, 0)


def test_padding_and_defaults():
    shared = L.padded((8, 32), 32, 4)
    assert [shared.padded(o) for o in (0, 31, 32, 64)] == [0, 31, 36, 72] and shared.allocation_elements() == 7 * 36 + 32
    assert L.fitting_swizzle(256) == 128 and L.fitting_swizzle(64) == 64 and L.fitting_swizzle(16) == 0
    with pytest.raises(ValueError, match="shorter than the swizzle"):
        L.nvmma((8, 8), 16, 128)
