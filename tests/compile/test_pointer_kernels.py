"""Kernels on pointers through all passes: loops of loads that are copied ahead, matrix instructions, and what masks leave out."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import run_kernel

import tilewright
import tilewright.language as tl


@tilewright.jit
def gemm(A, B, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OTHER: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = A + rm[:, None] * K + rk[None, :]
    b = B + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.int32 if A.dtype.element_ty == tl.int8 else tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        if OTHER is None:
            x = tl.load(a, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0)
            y = tl.load(b, mask=(rk[:, None] < left) & (rn[None, :] < N), other=0)
        else:
            x = tl.load(a, mask=(rm[:, None] < M) & (rk[None, :] < left), other=OTHER)
            y = tl.load(b, mask=(rk[:, None] < left) & (rn[None, :] < N), other=OTHER)
        acc = tl.dot(x, y, acc)
        a += BK // 2
        b += BK * N
        a += BK // 2
    tl.store(C + rm[:, None] * N + rn[None, :], acc.to(C.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def whole_numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: type = np.float16) -> np.ndarray:
    """Numbers whose products are exact."""
    return rng.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(("m", "n", "k", "other"), [(64, 64, 128, None), (80, 48, 80, None), (80, 48, 112, 2.0), (64, 64, 0, None)])
def test_gemm(m, n, k, other, arch, stages):
    rng = np.random.default_rng(m + k)
    a, b = whole_numbers(rng, (m, k)), whole_numbers(rng, (k, n))
    c = np.full((m, n), 7, np.float16)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}
    constants = {"BM": 64, "BN": 32, "BK": 32, "OTHER": other}
    run_kernel(
        gemm, (-(-m // 64), -(-n // 32)), arguments, constants, {**dict.fromkeys("AB", "*fp16"), "C": "*fp16"}, num_stages=stages, arch=arch
    )
    want = a.astype(np.float32) @ b.astype(np.float32)
    if other is not None:  # every column of K that is left out adds other * other
        want += (-k % 32) * other * other
    assert np.array_equal(c, want.astype(np.float16))


@pytest.mark.parametrize("arch", [80, 90])
def test_gemm_of_bytes(arch):
    m, n, k = 64, 32, 96
    rng = np.random.default_rng(3)
    a, b = whole_numbers(rng, (m, k), np.int8), whole_numbers(rng, (k, n), np.int8)
    c = np.zeros((m, n), np.int32)
    arguments = {"A": a, "B": b, "C": c, "M": m, "N": n, "K": k}
    run_kernel(
        gemm, (1, 1), arguments, {"BM": 64, "BN": 32, "BK": 32, "OTHER": None}, {**dict.fromkeys("AB", "*i8"), "C": "*i32"}, arch=arch
    )
    assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


@tilewright.jit
def attention(Q, K, V, OUT, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q = tl.load(Q + rm[:, None] * D + rd[None, :])
    m = tl.full((BM,), -float("inf"), tl.float32)
    d = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, S, BN):
        keys = tl.load(K + (n + rn)[None, :] * D + rd[:, None])
        s = tl.dot(q, keys)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        scale = tl.math.exp2(m - new)
        d = d * scale + tl.sum(p, 1)
        v = tl.load(V + (n + rn)[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * scale[:, None])
        m = new
    tl.store(OUT + rm[:, None] * D + rd[None, :], (acc / d[:, None]).to(OUT.dtype.element_ty))


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("arch", [80, 90])
def test_attention(stages, arch):
    s, d = 192, 64
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(s, d)).astype(np.float16) for _ in range(3))
    out = np.zeros((64, d), np.float16)
    types = dict.fromkeys(("Q", "K", "V", "OUT"), "*fp16")
    run_kernel(
        attention, (1,), {"Q": q, "K": k, "V": v, "OUT": out, "S": s}, {"D": d, "BM": 64, "BN": 64}, types, num_stages=stages, arch=arch
    )
    scores = q[:64].astype(np.float32) @ k.astype(np.float32).T
    p = np.exp2(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, (p / p.sum(1, keepdims=True)) @ v.astype(np.float32), atol=4e-3)


@tilewright.jit
def one_product(A, B, C, START: tl.constexpr):
    i, j, k = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 32)
    x = tl.load(A + i[:, None] * 32 + k[None, :])
    y = tl.load(B + k[:, None] * 32 + j[None, :])
    acc = tl.full((64, 32), START, tl.int32 if A.dtype.element_ty == tl.int8 else tl.float32)
    tl.store(C + i[:, None] * 32 + j[None, :], tl.dot(x, y, acc))


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(("dtype", "types"), [(np.float16, ("*fp16", "*fp32")), (np.int8, ("*i8", "*i32"))])
def test_accumulators_start_at_a_constant(dtype, types, arch, start):
    rng = np.random.default_rng(4)
    a, b = whole_numbers(rng, (64, 32), dtype), whole_numbers(rng, (32, 32), dtype)
    c = np.zeros((64, 32), np.float32 if dtype == np.float16 else np.int32)
    signature = {"A": types[0], "B": types[0], "C": types[1]}
    run_kernel(one_product, (1,), {"A": a, "B": b, "C": c}, {"START": start}, signature, arch=arch)
    assert np.array_equal(c, a.astype(c.dtype) @ b.astype(c.dtype) + start)


@tilewright.jit
def sum_rows(X, OUT, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x = tl.load(X + 1 + i[:, None] * COLUMNS + j[None, :])  # not aligned: no vectors, so that lanes lie along the rows
    tl.store(OUT + i, tl.sum(x, 1))


@pytest.mark.parametrize(("rows", "columns"), [(1, 32), (2, 16), (4, 8), (8, 4), (2, 64)])
def test_sums_of_few_lanes(rows, columns):
    x = np.arange(1, rows * columns + 2, dtype=np.int32)
    out = np.zeros(rows, np.int32)
    types = {"X": "*i32", "OUT": "*i32"}
    run_kernel(sum_rows, (1,), {"X": x, "OUT": out}, {"ROWS": rows, "COLUMNS": columns}, types, arch=80, num_warps=1)
    assert out.tolist() == x[1:].reshape(rows, columns).sum(1).tolist()
