"""Kernels that a cluster of CTAs runs (`num_ctas` > 1), through all passes on the test machine; CTAs run apart in random turns."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import run_kernel

import tilewright
import tilewright.language as tl

F32 = "*fp32"


@tilewright.jit
def add(X, Y, OUT, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(OUT + i, tl.load(X + i, mask=i < n) + tl.load(Y + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("ctas", [2, 4, 16])
def test_elementwise(ctas):
    x, y = (np.random.default_rng(s).standard_normal(500).astype(np.float32) for s in (0, 1))
    out = np.full_like(x, np.nan)
    run_kernel(add, (2,), {"X": x, "Y": y, "OUT": out, "n": 500}, {"B": 256}, dict.fromkeys(("X", "Y", "OUT"), F32), num_ctas=ctas)
    assert (out == x + y).all()


@tilewright.jit
def softmax(X, OUT, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(X + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(OUT + row * n + i, e / tl.sum(e, 0), mask=i < n)


@pytest.mark.parametrize("ctas", [1, 2, 8])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_softmax(ctas, seed):
    x = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)
    out = np.full_like(x, np.nan)
    run_kernel(softmax, (2,), {"X": x, "OUT": out, "n": 1000}, {"B": 1024}, {"X": F32, "OUT": F32}, seed, num_ctas=ctas)
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
