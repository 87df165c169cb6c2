"""Vectors that meet the results of dots: loaded by the threads that need them, not through shared memory."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_harness import passes_of, run_kernel

import tilewright
import tilewright.language as tl


@tilewright.jit
def scaled(A, B, SCALE, BIAS, ROWS, OUT, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """OUT = (sum over blocks of K of A B SCALE[block]) + BIAS + ROWS; columns from N on have no scale and no bias."""
    rm = tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rows = tl.load(ROWS + rm)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(A + rm[:, None] * K + k + rk[None, :])
        y = tl.load(B + (k + rk)[:, None] * BN + rn[None, :])
        scale = tl.load(SCALE + k // BK * N + rn, mask=rn < N, other=0.0)
        acc += tl.dot(x, y) * scale[None, :]
    bias = tl.load(BIAS + rn, mask=rn < N, other=0.0)
    tl.store(OUT + rm[:, None] * BN + rn[None, :], acc + bias.to(tl.float32)[None, :] + rows[:, None])


TYPES = {"A": "*fp16", "B": "*fp16", "SCALE": "*fp32", "BIAS": "*fp16", "ROWS": "*fp32", "OUT": "*fp32"}


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("n", [32, 16])
def test_values(arch, n):
    m, columns, k, block = 64, 32, 96, 32
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, columns)))
    scale, bias, rows = (
        rng.integers(1, 5, (k // block, n)).astype(np.float32),
        np.arange(n, dtype=np.float16),
        np.arange(m, dtype=np.float32),
    )
    out = np.full((m, columns), np.nan, np.float32)
    arguments = {"A": a, "B": b, "SCALE": scale, "BIAS": bias, "ROWS": rows, "OUT": out, "N": n, "K": k}
    run_kernel(scaled, (1,), arguments, {"BM": m, "BN": columns, "BK": block}, TYPES, arch=arch)
    parts = [a[:, i : i + block].astype(np.float32) @ b[i : i + block, :n].astype(np.float32) for i in range(0, k, block)]
    want = np.zeros_like(out)
    want[:, :n] = sum(part * s for part, s in zip(parts, scale)) + bias
    assert np.array_equal(out, want + rows[:, None])


@pytest.mark.parametrize(("warps", "arch"), [(4, 90), (8, 90), (4, 80)])
def test_structure(warps, arch):
    types = {**TYPES, "N": "i32", "K": "i32"}
    module, _ = passes_of(scaled, types, {"BM": 128, "BN": 64, "BK": 64}, num_warps=warps, arch=arch, tma=False)
    text = str(module)
    copied = re.findall(r"tilegpu\.async_copy .*?tensor<([\dx]+)x!tile", text)
    assert copied and all("x" in shape for shape in copied), "only blocks are copied to shared memory"
    assert not re.search(r"convert_layout .* -> tensor<(64|128)x", text), "no vector moves between threads"


def test_vectors_that_are_multiplied_before_a_dot_run_ahead():
    """What is needed before the dot must be there in time: it is copied ahead as the block is."""

    @tilewright.jit
    def kernel(A, B, SCALE, OUT, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            x = tl.load(A + rm[:, None] * K + k + rk[None, :]) * tl.load(SCALE + k + rk)[None, :]
            acc = tl.dot(x, tl.load(B + (k + rk)[:, None] * BN + rn[None, :]), acc)
        tl.store(OUT + rm[:, None] * BN + rn[None, :], acc)

    types = {"A": "*fp16", "B": "*fp16", "SCALE": "*fp16", "OUT": "*fp32", "K": "i32"}
    module, _ = passes_of(kernel, types, {"BM": 64, "BN": 64, "BK": 64}, num_warps=4, tma=False)
    assert str(module).count("tilegpu.async_copy") > 2 * 2
