"""Derived answers and conversion plans against simulation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import distributed, inputs, shapes

from tilewright.compiler import layouts as L
from tilewright.compiler.layouts import f2

FEW = settings(max_examples=150)


def holders(layout):
    """(register, lane, warp) -> coordinates."""
    return {(i["register"], i["lane"], i["warp"]): layout(**i) for i in inputs(layout)}


@FEW
@given(st.data())
def test_conversion_kind_against_search(data):
    shape = data.draw(shapes(6, 2))
    src, dst = data.draw(distributed(shape)), data.draw(distributed(shape))
    kind = L.conversion_kind(src, dst)
    have, want = holders(src), holders(dst)
    in_warp = all(any(c == coords and w == warp for (_, _, w), c in have.items()) for (_, _, warp), coords in want.items())
    assert in_warp == (kind in ("identity", "register", "warp"))
    sources = L.register_sources(src, dst)
    assert (sources is not None) == (kind in ("identity", "register"))
    if sources is not None:
        for (reg, lane, warp), coords in want.items():
            assert have[sources[reg], lane, warp] == coords


@FEW
@given(st.data())
def test_shuffle_plan_moves_every_element(data):
    shape = data.draw(shapes(7, 2))
    src = data.draw(distributed(shape))
    # A destination that stays in the warps: keep the warp bits, deal the others out anew.
    dst = data.draw(distributed(shape))
    plan = L.shuffle_plan(src, dst)
    if plan is None:
        return
    x = {(r, lane, w): c for (r, lane, w), c in holders(src).items()}
    lanes, warps = src.in_size("lane"), src.in_size("warp")
    for (reg, lane, warp), coords in holders(dst).items():
        lane_bits = src.in_bits("lane")
        r = plan.expand[reg]
        before = r ^ f2.apply(plan.post, lane)
        source_lane = f2.apply(plan.lane_of_register, before) ^ f2.apply(plan.lane_of_thread, lane | warp << lane_bits)
        assert 0 <= source_lane < lanes and warp < warps
        i = f2.apply(plan.source, before) ^ f2.apply(plan.pre, source_lane | warp << lane_bits)
        assert x[i, source_lane, warp] == coords


@FEW
@given(st.data())
def test_shuffle_plan_exists_for_permutations_inside_a_warp(data):
    shape = data.draw(shapes(7, 2))
    src = data.draw(distributed(shape, copies=False))
    order = data.draw(st.permutations(range(src.in_bits("register") + src.in_bits("lane"))))
    cols = [*src.column("register"), *src.column("lane")]
    cols = [cols[i] for i in order]
    dst = src.with_columns(register=cols[: src.in_bits("register")], lane=cols[src.in_bits("register") :])
    if src.is_injective:
        assert L.shuffle_plan(src, dst) is not None


@FEW
@given(st.data(), st.sampled_from([1, 2, 4, 8]), st.sampled_from([64, 4096]))
def test_scratch_plan_moves_every_element(data, element_bytes, limit):
    shape = data.draw(shapes(8, 2))
    src, dst = data.draw(distributed(shape)), data.draw(distributed(shape))
    plan = L.scratch_plan(src, dst, element_bytes, limit)
    memory = {}
    for index in inputs(plan.src):
        place = f2.apply(plan.src_columns, flat(plan.src, index))
        assert place < plan.elements
        key = (f2.apply(plan.src_round, index["register"]), place)
        assert memory.setdefault(key, plan.src(**index)) == plan.src(**index)
    for index in inputs(dst):
        inner = dict(index, register=plan.expand[index["register"]])
        key = (f2.apply(plan.dst_round, inner["register"]), f2.apply(plan.dst_columns, flat(plan.dst, inner)))
        assert memory[key] == dst(**index)


def flat(layout, index):
    out, shift = 0, 0
    for name in layout.names:
        out |= index[name] << shift
        shift += layout.in_bits(name)
    return out


@pytest.mark.parametrize("element_bytes", [2, 4])
@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (L.mma_accumulator((128, 128), (4, 2)), L.default_blocked((128, 128), 8, vector=8)),
        (L.wgmma_accumulator((128, 128), 8), L.default_blocked((128, 128), 8, vector=8)),
        (L.default_blocked((128, 128), 8, vector=4), L.trans(L.default_blocked((128, 128), 8, vector=4), (1, 0))),
    ],
)
def test_scratch_plan_is_free_of_bank_conflicts(src, dst, element_bytes):
    plan = L.scratch_plan(src, dst, element_bytes, 1 << 20)
    for layout, columns in ((plan.src, plan.src_columns), (plan.dst, plan.dst_columns)):
        regs = layout.in_bits("register")
        vector, _ = L.vector_basis(columns[:regs], columns[regs:], 16 // element_bytes)
        lanes = columns[regs : regs + 5]
        width = element_bytes << len(vector)
        matrix = lanes[:2] == (2, 4) and width == 4  # stmatrix: rows of 16 bytes, lanes 2..4 give the row
        assert L.bank_conflicts(lanes[2:] if matrix else lanes, 16 if matrix else width, element_bytes) == 1


@FEW
@given(st.data())
def test_vector_width_is_the_longest_aligned_run(data):
    shape = data.draw(shapes(6, 2))
    layout = data.draw(distributed(shape))
    width = L.vector_width(layout, layout.rank - 1, 16, 8)
    bits = L.contiguous_registers(layout, layout.rank - 1, 16)
    assert width == 1 << len(bits)
    order = L.register_order(bits, layout.in_bits("register"))
    assert sorted(order) == list(range(layout.in_size("register")))
    for lane in range(layout.in_size("lane")):
        for start in range(0, len(order), width):
            run = [layout(register=order[start + i], lane=lane) for i in range(width)]
            assert run[0][-1] % width == 0
            assert all(c == (*run[0][:-1], run[0][-1] + i) for i, c in enumerate(run))


@FEW
@given(st.data())
def test_vector_basis_finds_runs_in_shared_memory(data):
    shape = data.draw(shapes(6, 2))
    layout = data.draw(distributed(shape, copies=False))
    shared = L.identity(shape, tuple(data.draw(st.permutations(range(len(shape))))))
    columns = L.shared_columns(layout, shared)
    others = columns["lane"] + columns["warp"]
    vector, rest = L.vector_basis(columns["register"], others, 8)
    assert 1 << len(vector) == L.shared_vector_width(layout, shared, 16)
    assert f2.rank([*vector, *rest]) == layout.in_bits("register") == len(vector) + len(rest)
    for i in range(1 << len(rest)):
        base = f2.apply(rest, i)
        for k in range(1 << len(vector)):
            assert f2.apply(columns["register"], base ^ f2.apply(vector, k)) == f2.apply(columns["register"], base) + k


@given(st.lists(st.integers(0, 1023), min_size=5, max_size=5), st.sampled_from([1, 2, 4, 8, 16]))
def test_bank_conflicts_against_enumeration(offsets, vector_bytes):
    offsets = [o * vector_bytes for o in offsets]
    addresses = [f2.apply(offsets, lane) for lane in range(32)]
    assert L.bank_conflicts(offsets, vector_bytes, 1) == L.count_bank_conflicts(addresses, vector_bytes)


def test_swizzles_remove_conflicts():
    rows = L.blocked((32, 64), (1, 8), (32, 1), (1, 1), (1, 0))
    assert L.shared_conflicts(rows, L.identity((32, 64)), 16) == 8
    assert L.shared_conflicts(rows, L.nvmma((32, 64), 16), 16) == 1
    assert L.shared_conflicts(rows, L.conflict_free((32, 64), 16), 16) == 1


def test_lanes_that_hold_other_registers_meet_no_conflicts():
    """An accumulator of fp32 in the widest swizzle: the lanes of two rows would write the same banks."""
    accumulator = L.wgmma_accumulator((64, 128), 4)
    shared = L.nvmma((64, 128), 32)
    spread = L.without_conflicts(accumulator, shared, 32)
    assert (L.shared_conflicts(accumulator, shared, 32), L.shared_conflicts(spread, shared, 32)) == (2, 1)
    assert L.shared_vector_width(spread, shared, 32) == L.shared_vector_width(accumulator, shared, 32)
    plan = L.shuffle_plan(accumulator, spread)
    assert plan.same_lane and not any(plan.lane_of_register), "selects, no shuffles"
    rows = L.blocked((32, 64), (1, 8), (32, 1), (1, 1), (1, 0))
    assert L.without_conflicts(rows, L.nvmma((32, 64), 16), 16) == rows


def test_copies_and_orders():
    layout = L.blocked((16,), (1,), (32,), (4,), (0,))
    assert L.store_masks(layout) == (0, 16, 3, 0) and L.is_replicated(layout)
    assert L.dim_order(L.blocked((16, 16), (4, 1), (4, 8), (1, 4), (0, 1))) == (0, 1)
    assert L.extent_per_thread(L.blocked((16, 16), (4, 1), (4, 8), (1, 4), (0, 1)), 0) == 4
