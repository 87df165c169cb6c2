"""CTAs that work on many programs: the same results, and only where that is right and pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel
from test_pointer_boxes import HALF, matmul, values
from test_tma_kernels import compiled

import tilewright
import tilewright.language as tl
from tilewright.compiler.analysis.loop_slice import PROGRAMS
from tilewright.compiler.backends.nvidia.tensor_maps import has_like_programs
from tilewright.compiler.passes.building import collect

BIG = {"BM": 128, "BN": 128, "BK": 64, "G": 2, "sak": 1, "sbn": 1}


@tilewright.jit
def gemm(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr):
    """A tile a program, from descriptors."""
    pid = tl.program_id(0)
    pm = pid // tl.cdiv(N, BN)
    pn = pid % tl.cdiv(N, BN)
    if KIND == "left":
        if pm * BM >= M:
            return
    ad = tl.make_tensor_descriptor(A, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    bd = tl.make_tensor_descriptor(B, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    cd = tl.make_tensor_descriptor(C, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if KIND == "triangle":
        for k in range(pm + 1):
            acc = tl.dot(ad.load([pm * BM, k * BK]), bd.load([k * BK, pn * BN]), acc)
    elif KIND == "forbidden":
        for k in tl.range(tl.cdiv(K, BK), warp_specialize=False):
            acc = tl.dot(ad.load([pm * BM, k * BK]), bd.load([k * BK, pn * BN]), acc)
    elif KIND == "vector":
        for k in range(tl.cdiv(K, BK)):
            acc += tl.load(A + k * BN + tl.arange(0, BN)).to(tl.float32)[None, :]
            acc = tl.dot(ad.load([pm * BM, k * BK]), bd.load([k * BK, pn * BN]), acc)
    else:
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(ad.load([pm * BM, k * BK]), bd.load([k * BK, pn * BN]), acc)
    if KIND == "last":
        acc += (tl.num_programs(0) - pid).to(tl.float32)
    if KIND == "counted":
        tl.atomic_add(C, 1.0)
    if KIND == "plane":
        acc += tl.program_id(1).to(tl.float32)
    if KIND == "shown":
        tl.device_print("tile", pid)
    cd.store([pm * BM, pn * BN], acc.to(C.dtype.element_ty))


def module_of(kind: str, blocks: tuple[int, int, int] = (128, 128, 64), **options: Any) -> Any:
    constants = dict(zip(("BM", "BN", "BK"), blocks, strict=True)) | {"KIND": kind}
    return passes_of(gemm, {**HALF, "M": "i32", "N": "i32", "K": "i32"}, constants, **options)[0]


def persistent(kind: str, blocks: tuple[int, int, int] = (128, 128, 64), **options: Any) -> bool:
    module = module_of(kind, blocks, **options)
    return any(PROGRAMS in loop.attributes for loop in collect(module.operation, "scf.for"))


@pytest.mark.parametrize("kind", ["", "last", "plane", "left"])
def test_is_chosen(kind):
    assert persistent(kind, num_warps=8)


@pytest.mark.parametrize("kind", ["triangle", "forbidden", "vector", "counted", "shown"])
def test_is_not_chosen(kind):
    assert not persistent(kind, num_warps=8)


@pytest.mark.parametrize(("kind", "alike"), [("", True), ("plane", True), ("left", False), ("triangle", False)])
def test_programs_are_alike(kind, alike):
    """Or they may leave at once, or be of any length: then the launcher cannot know how many CTAs end no later than all would."""
    assert has_like_programs(module_of(kind, num_warps=8, persistent=kind == "triangle" or None).operation) == alike


def test_needs_work_to_overlap():
    assert not persistent("", (64, 64, 64), num_warps=4) and not persistent("", (128, 128, 16), num_warps=8)


def test_option():
    assert not persistent("", num_warps=8, persistent=False)
    assert persistent("triangle", num_warps=8, persistent=True) and persistent("", (64, 64, 64), persistent=True)
    assert not persistent("counted", num_warps=8, persistent=True)
    assert not persistent("", num_warps=8, persistent=True, maxnreg=128)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("m", "n", "k", "kind"), [(384, 384, 192, ""), (320, 144, 64, "last"), (128, 400, 0, ""), (128, 128, 80, "")])
def test_gemm(m, n, k, kind, seed):
    rng = np.random.default_rng(seed)
    a, b, c = values(rng, m, max(k, 16)), values(rng, max(k, 16), n), np.full((m, n), np.nan, np.float16)
    tiles = -(-m // 128) * -(-n // 128)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}
    run_kernel(gemm, (tiles,), arguments, {"BM": 128, "BN": 128, "BK": 64, "KIND": kind}, HALF, seed=seed, num_warps=8)
    want = a[:, :k].astype(np.float32) @ b[:k].astype(np.float32)
    if kind:
        number = np.arange(m)[:, None] // 128 * -(-n // 128) + np.arange(n)[None, :] // 128
        want += tiles - number
    assert np.abs(c - want).max() < 0.1


@pytest.mark.parametrize(("m", "n", "k"), [(384, 256, 128), (200, 264, 96)])
def test_matmul_of_pointers(m, n, k):
    rng = np.random.default_rng(m)
    a, b, c = values(rng, m, k), values(rng, k, n), np.full((m, n), np.nan, np.float16)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k, "sam": k, "sbk": n, "scm": n, "start": 0}
    assert run_kernel(matmul, (-(-m // 128) * -(-n // 128),), arguments, BIG, HALF, seed=2, num_warps=8)
    assert np.abs(c - a.astype(np.float32) @ b.astype(np.float32)).max() < 0.1


def test_copies_ahead_have_no_policy():
    """With one, ptxas makes an illegal instruction where a slot's place is uniform (seed 400842 on the H200)."""

    @tilewright.jit
    def rows(X, Y):
        at = tl.program_id(0) * 16 + tl.arange(0, 16)
        x = tl.load(X + at, eviction_policy="evict_last")
        tl.store(Y + at, x + tl.sum(x, 0))

    text = compiled(rows, {"X": "*fp32", "Y": "*fp32"}, {}, num_warps=4, num_stages=3, persistent=True).asm["ptx"]
    assert "cp.async.ca" in text and "cache_hint" not in text
