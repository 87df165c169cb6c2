"""Loops whose loads take their addresses from memory: rows by a list of indices, pages of a table. The indices are loaded ahead as well."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.language as tl


@tilewright.jit
def gathered(A, rows, B, C, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inside = k + rk < K
        row = tl.load(rows + k + rk, mask=inside, other=0)
        a = tl.load(A + rm[:, None] * K + (k + rk)[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(B + row[:, None] * BN + rn[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(C + rm[:, None] * BN + rn[None, :], acc)


@tilewright.jit
def paged(A, table, B, C, K, LAST, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    at = table
    for k in range(K):
        page = tl.load(at, mask=k < LAST, other=0)
        a = tl.load(A + rm[:, None] * (K * BK) + (k * BK + rk)[None, :])
        b = tl.load(B + page * (BK * BN) + rk[:, None] * BN + rn[None, :])
        acc = tl.dot(a, b, acc)
        at += 1
    tl.store(C + rm[:, None] * BN + rn[None, :], acc)


@tilewright.jit
def paged_blocks(A, table, B, C, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn = tl.arange(0, BM), tl.arange(0, BN)
    left = tl.make_tensor_descriptor(A, shape=[BM, K * BK], strides=[K * BK, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(B, shape=[N, BN], strides=[BN, 1], block_shape=[BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(K):
        page = tl.load(table + k)
        acc = tl.dot(left.load([0, k * BK]), right.load([page * BK, 0]), acc)
    tl.store(C + rm[:, None] * BN + rn[None, :], acc)


@tilewright.jit
def rows_that_change(A, rows, B, C, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        row = tl.load(rows + rk)
        a = tl.load(A + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(B + row[:, None] * BN + rn[None, :])
        acc = tl.dot(a, b, acc)
        tl.store(rows + rk, row + BK)
    tl.store(C + rm[:, None] * BN + rn[None, :], acc)


CONSTANTS = {"BM": 64, "BN": 32, "BK": 32}
TYPES = {"A": "*fp16", "B": "*fp16", "C": "*fp32", "rows": "*i32", "table": "*i32"}


def numbers(seed: int, *shape: int) -> np.ndarray:
    """Numbers whose products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("k", [0, 32, 80, 224])
def test_rows_by_index(k, arch, stages):
    a, b, c = numbers(1, 64, k), numbers(2, 300, 32), np.full((64, 32), 7, np.float32)
    rows = np.random.default_rng(3).integers(0, 300, k).astype(np.int32)
    run_kernel(gathered, (1,), {"A": a, "rows": rows, "B": b, "C": c, "K": k}, CONSTANTS, TYPES, num_stages=stages, arch=arch)
    assert np.array_equal(c, a.astype(np.float32) @ b[rows].astype(np.float32))


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("pages", [1, 2, 5])
def test_pages_of_a_table(pages, arch, stages):
    a, b, c = numbers(4, 64, 32 * pages), numbers(5, 8 * 32, 32), np.full((64, 32), 7, np.float32)
    table = np.random.default_rng(6).integers(0, 8, pages).astype(np.int32)
    arguments = {"A": a, "table": table, "B": b, "C": c, "K": pages, "LAST": pages - 1}
    run_kernel(paged, (1,), arguments, CONSTANTS, TYPES, num_stages=stages, arch=arch)
    rows = np.concatenate([32 * (page if i < pages - 1 else 0) + np.arange(32) for i, page in enumerate(table)])
    assert np.array_equal(c, a.astype(np.float32) @ b[rows].astype(np.float32))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("pages", [1, 5])
def test_pages_by_descriptor(pages, stages):
    a, b, c = numbers(4, 64, 32 * pages), numbers(5, 8 * 32, 32), np.full((64, 32), 7, np.float32)
    table = np.random.default_rng(6).integers(0, 8, pages).astype(np.int32)
    arguments = {"A": a, "table": table, "B": b, "C": c, "K": pages, "N": 256}
    run_kernel(paged_blocks, (1,), arguments, CONSTANTS, TYPES, num_stages=stages)
    rows = np.concatenate([32 * page + np.arange(32) for page in table])
    assert np.array_equal(c, a.astype(np.float32) @ b[rows].astype(np.float32))


def test_indices_that_the_loop_writes_are_not_read_ahead():
    a, b, c, rows = numbers(1, 64, 96), numbers(2, 96, 32), np.full((64, 32), 7, np.float32), np.arange(32, dtype=np.int32)
    run_kernel(rows_that_change, (1,), {"A": a, "rows": rows, "B": b, "C": c, "K": 96}, CONSTANTS, TYPES)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("kernel", "copy"), [(gathered, "async_copy"), (paged, "async_copy"), (paged_blocks, "tma_load")])
def test_copies_by_index_run_ahead(kernel, copy):
    signature = {name: TYPES.get(name, "i32") for name in kernel.arg_names if name not in CONSTANTS}
    module, _ = passes_of(kernel, signature, CONSTANTS, num_stages=3)
    loops = [op for op in walk(module.operation) if op.name == "scf.for"]
    inside = [op.name for op in walk(loops[0])]
    assert inside.count(f"tilegpu.{copy}") == 2
    assert inside.count("tile.load") == 1
    assert "tilegpu.convert_layout" not in inside


def walk(op):
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from walk(inner.operation)
