"""Layout conversions, buffers and asynchronous copies: results on the test machine, instruction counts in PTX."""

from __future__ import annotations

import re

import numpy as np
import pytest
import ttgir_kernels as K
from lowering_harness import assemble

from tilewright.compiler import layouts as L
from tilewright.compiler.layouts import scratch_plan
from tilewright.compiler.lowering.convert_layout import SCRATCH_LIMIT

NUMPY = {"i1": np.uint8, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64, "f16": np.uint16, "bf16": np.uint16}
NUMPY |= {"f32": np.uint32, "f64": np.uint64}


def bits(register, lane, warp) -> L.LinearLayout:
    """A layout of 512 elements by its bases."""
    return L.LinearLayout({"register": register, "lane": lane, "warp": warp, "block": []}, (512,))


ROWS = L.default_blocked((64, 64), 4, vector=4)
COLUMNS = L.trans(ROWS, (1, 0))
ACC = L.mma_accumulator((64, 64), (2, 2))
CONVERSIONS = {
    "rows to columns": (ROWS, COLUMNS),
    "accumulator to rows": (ACC, ROWS),
    "rows to operand A": (ROWS, L.mma_operand((64, 64), (2, 2), 16, 0)),
    "accumulator to fp8 operand": (L.wgmma_accumulator((64, 64), 4), L.wgmma_operand_a((64, 64), 4, 8)),
    "operand to rows (copies in warps)": (L.mma_operand((64, 64), (2, 2), 16, 1), ROWS),
    "small: copies in lanes": (L.blocked((8, 8), (1, 1), (8, 4), (4, 1), (1, 0)), L.blocked((8, 8), (1, 2), (4, 8), (1, 4), (1, 0))),
    "one dimension": (L.blocked((512,), (4,), (32,), (4,), (0,)), L.blocked((512,), (1,), (32,), (4,), (0,))),
    "slice": (L.slice_dim(ACC, 1), L.blocked((64,), (1,), (32,), (4,), (0,))),
    "lanes reversed": (
        L.blocked((32, 4), (1, 4), (32, 1), (1, 4), (1, 0)),
        L.blocked((32, 4), (1, 4), (32, 1), (1, 4), (1, 0)).with_columns(lane=(64, 32, 16, 8, 4)),
    ),
    "registers for lanes": (
        bits([(1,), (2,)], [(4,), (8,), (16,), (32,), (64,)], [(128,), (256,)]),
        bits([(32,), (64,)], [(1,), (2,), (4,), (8,), (16,)], [(128,), (256,)]),
    ),
    "register picked by lane": (
        bits([(1,), (2,)], [(4,), (8,), (16,), (32,), (64,)], [(128,), (256,)]),
        bits([(1,), (2,)], [(5,), (8,), (18,), (32,), (64,)], [(129,), (256,)]),
    ),
}


def data(shape, element: str) -> np.ndarray:
    kind = NUMPY[element]
    values = np.random.default_rng(0).integers(0, np.iinfo(kind).max, shape, kind, endpoint=True)
    return values & 1 if element == "i1" else values


@pytest.mark.parametrize("element", ["i8", "f16", "f32", "i64"])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_keeps_every_element(run, name, element):
    src, dst = CONVERSIONS[name]
    source = data(src.out_sizes, element)
    result = np.zeros_like(source)
    run(K.convert(src, dst, element, 4), source, result)
    np.testing.assert_array_equal(result, source)


@pytest.mark.parametrize("element", ["bf16", "f64", "i16"])
def test_other_types(run, element):
    source = data((64, 64), element)
    result = np.zeros_like(source)
    run(K.convert(ACC, COLUMNS, element, 4), source, result)
    np.testing.assert_array_equal(result, source)


def test_large_conversion_goes_in_rounds(run):
    src, dst = L.wgmma_accumulator((128, 256), 8), L.default_blocked((128, 256), 8, vector=4)
    source = data((128, 256), "f32")
    result = np.zeros_like(source)
    run(K.convert(src, dst, "f32", 8), source, result)
    np.testing.assert_array_equal(result, source)


def test_rounds_wait_for_each_other():
    """Each round is written and read behind a barrier, and written only when the one before was read."""
    src, dst = L.wgmma_accumulator((128, 256), 8), L.default_blocked((128, 256), 8, vector=4)
    rounds = scratch_plan(src, dst, 4, SCRATCH_LIMIT).rounds
    assert rounds == 4
    assert assemble(K.convert(src, dst, "f32", 8)).count("bar") == 2 * rounds - 1


def test_random_conversions(run):
    rng = np.random.default_rng(1)
    source = data((32, 32), "f16")
    for _ in range(12):
        layouts = []
        for _ in range(2):
            columns = [1 << int(b) for b in rng.permutation(10)]
            parts = {"register": columns[:3], "lane": columns[3:8], "warp": columns[8:], "block": ()}
            layouts.append(L.LinearLayout.from_columns(parts, (32, 32)))
        result = np.zeros_like(source)
        run(K.convert(*layouts, "f16", 4), source, result)
        np.testing.assert_array_equal(result, source)


def test_conversion_inside_a_warp_takes_shuffles_only():
    src, dst = CONVERSIONS["accumulator to fp8 operand"]
    assembled = assemble(K.convert(src, dst, "i8", 4))
    assert assembled.count("bar.sync") == assembled.count("st.shared") == 0
    # 32 elements of a byte; four travel in one word.
    assert assembled.count("shfl.sync") == 8


def test_registers_only():
    src = L.blocked((256, 16), (1, 4), (32, 1), (4, 1), (1, 0))
    dst = L.blocked((256, 16), (1, 4), (32, 1), (4, 1), (0, 1))
    assert L.conversion_kind(src, dst) == "register"
    assembled = assemble(K.convert(src, dst, "f32", 4))
    assert assembled.count("bar.sync") == assembled.count("shfl") == assembled.count("ld.shared") == 0


def test_epilogue_conversion_is_wide():
    """Accumulator of bf16 to rows: stmatrix in, 16-byte loads out, one barrier."""
    src, dst = L.wgmma_accumulator((128, 64), 8), L.default_blocked((128, 64), 8, vector=8)
    assembled = assemble(K.convert(src, dst, "bf16", 8))
    assert assembled.count("stmatrix.sync.aligned.m8n8.x4") == 4
    assert assembled.count("ld.shared.v4.b32") == 4
    assert assembled.count("bar") == 1
    older = assemble(K.convert(src, dst, "bf16", 8), 80)
    assert older.count("stmatrix") == 0 and older.count("ld.shared.v4.b32") == 4


BUFFERS = {
    "plain": L.identity((64, 64)),
    "columns": L.identity((64, 64), (0, 1)),
    "xor": L.swizzled((64, 64), 8, 1, 8),
    "padded": L.padded((64, 64), 64, 8),
    "tma": L.nvmma((64, 64), 16),
    "tma columns": L.nvmma((64, 64), 16, None, (0, 1)),
}


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.parametrize("dst", [ROWS, COLUMNS, L.mma_operand((64, 64), (2, 2), 16, 0), L.mma_operand((64, 64), (2, 2), 16, 1)])
def test_buffer_round_trip(run, name, dst):
    source = data((64, 64), "f16")
    result = np.zeros_like(source)
    run(K.through_buffer(ROWS, dst, BUFFERS[name], "f16", 4), source, result)
    np.testing.assert_array_equal(result, source)


@pytest.mark.parametrize("element", ["i8", "i16", "f32", "i64"])
def test_buffer_round_trip_of_other_types(run, element):
    source = data((64, 64), element)
    result = np.zeros_like(source)
    run(K.through_buffer(ROWS, ACC, L.conflict_free((64, 64), 8 * source.itemsize), element, 4), source, result)
    np.testing.assert_array_equal(result, source)


def test_accumulator_into_tma_buffer_by_stmatrix(run):
    acc = L.wgmma_accumulator((64, 64), 4)
    source = data((64, 64), "bf16")
    result = np.zeros_like(source)
    kernel = K.through_buffer(acc, ROWS, BUFFERS["tma"], "bf16", 4)
    run(kernel, source, result)
    np.testing.assert_array_equal(result, source)
    assert assemble(kernel).count("stmatrix.sync.aligned.m8n8.x4") == 4


@pytest.mark.parametrize(("operand", "trans"), [(0, ""), (1, ".trans")])
def test_operands_come_by_ldmatrix(operand, trans):
    dst = L.mma_operand((64, 64), (2, 2), 16, operand)
    assembled = assemble(K.through_buffer(ROWS, dst, BUFFERS["tma"], "f16", 4), 80)
    assert assembled.count(f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared") == 8
    assert assembled.count("ld.shared") == 0


def test_cp_async(run):
    source = data((64, 64), "f16")
    wide = L.default_blocked((64, 64), 4, vector=8)
    for shared in (BUFFERS["xor"], BUFFERS["tma"], BUFFERS["padded"]):
        result = np.zeros_like(source)
        kernel = K.async_copy(wide, ROWS, shared, "f16", 4)
        run(kernel, source, result, arch=80)
        np.testing.assert_array_equal(result, source)
        assembled = assemble(kernel, 80)
        assert assembled.count("cp.async.cg.shared.global") == 4
        assert assembled.count("cp.async.commit_group") == assembled.count("cp.async.wait_group") == 1


@pytest.mark.parametrize("below", [2001, 2000])
@pytest.mark.parametrize("other", [None, "7"])
@pytest.mark.parametrize("layout", [L.default_blocked((64, 64), 4, vector=8), L.default_blocked((64, 64), 4)])
def test_cp_async_under_a_mask(run, layout, other, below):
    """Also with one 16-bit element at a time, which cp.async cannot copy."""
    source = data((64, 64), "i16")
    result = np.zeros_like(source)
    run(K.async_copy(layout, ROWS, L.nvmma((64, 64), 16), "i16", 4, below=below, other=other), source, result)
    expected = source.copy()
    expected.reshape(-1)[below:] = int(other or 0)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("other", [None, "7"])
def test_cp_async_leaves_masked_elements_to_what_is_stored_there(other):
    """A copy in flight would overwrite `other`, so none is issued for elements that are masked off; zeros the copy itself makes."""
    layout = L.default_blocked((64, 64), 4, vector=8)
    ptx = assemble(K.async_copy(layout, ROWS, L.nvmma((64, 64), 16), "i16", 4, below=2000, other=other), 80).ptx
    copies = re.findall(r"(@%p\d+ )?cp\.async\.cg\.shared\.global \[[^]]*\], \[[^]]*\], 16(, %r\d+)?;", ptx)
    assert len(copies) == 4
    assert all(bool(predicate) == (other is not None) and bool(size) == (other is None) for predicate, size in copies)


def test_flags_and_pointers(run):
    source = np.arange(-2048, 2048, dtype=np.int32).reshape(64, 64)
    result = np.full_like(source, -1)
    run(K.convert_flags_and_pointers(ROWS, COLUMNS, 4), source, result)
    np.testing.assert_array_equal(result, np.where(source > 7, source, 0))
